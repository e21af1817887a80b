"""Files that libraries read: what a library would choose by them, written from its sources, is what the table says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import InputError
from synth.exchange.selection import FORMATS, Rule, chosen
from synth.exchange.selection.ompi_json import read as read_json

Choice = tuple[str, int, int]  # algorithm's word or number, and two parameters; "" for the library's own choice
Chooser = Callable[[str, int, int, int], Choice]  # of collective, size, ranks, nodes
OPEN: Choice = ("", 0, 0)


def by_nccl(text: str) -> Chooser:
    """plugin.c of the example: lines by fgets with 256 bytes, fields by strtok, the first match wins."""
    known = {"broadcast": "broadcast", "reduce": "reduce", "allgather": "allgather", "reducescatter": "reduce_scatter"}
    rows = []
    pieces = [line[k : k + 255] for line in text.splitlines(keepends=True) for k in range(0, len(line), 255)]
    for line in pieces:
        cells = [cell.strip(" \t") for cell in line.rstrip("\n").split(",") if cell]
        if line[0] not in "#\n" and 8 <= len(cells) <= 10:
            rows.append((known.get(cells[0], "allreduce"), cells[3], cells[4], *map(int, cells[1:3] + cells[5:8])))

    def choose(collective: str, size: int, ranks: int, nodes: int) -> Choice:
        for name, algorithm, protocol, least, most, channels, on, among in rows:
            fits = least <= size <= most and on in (-1, nodes) and among in (-1, ranks)
            if name == collective and fits:
                return algorithm, ("simple", "ll", "ll128").index(protocol), channels
        return OPEN

    return choose


def by_ompi(text: str) -> Chooser:
    """ompi_coll_tuned_get_com_rule_ptr and …_get_target_method_params: the last not larger, else the first."""
    numbers = iter([int(word) for line in text.split("\n") for word in line.partition("#")[0].split()])
    rules: dict[int, list[tuple[int, list[list[int]]]]] = {}
    for _ in range(next(numbers)):
        communicators = rules.setdefault(next(numbers), [])
        for _ in range(next(numbers)):
            count = next(numbers)
            communicators.append((count, [[next(numbers) for _ in range(4)] for _ in range(next(numbers))]))
    assert next(numbers, None) is None
    ids = dict(allgather=0, allreduce=2, alltoall=3, broadcast=7, gather=9, reduce=11, reduce_scatter=12, scatter=15)

    def choose(collective: str, size: int, ranks: int, nodes: int) -> Choice:
        communicators = rules.get(ids[collective])
        if not communicators:
            return OPEN
        _, messages = nearest(communicators, ranks)
        if not messages:
            return OPEN
        assert messages[0][0] == 0
        _, algorithm, fanout, segment = nearest(messages, size)
        return OPEN if algorithm == 0 else (str(algorithm), fanout, segment)

    return choose


def nearest(rows: Sequence[Any], key: int) -> Any:
    """The last row before the first whose key is larger, else the first."""
    best = rows[0]
    for row in rows:
        if row[0] > key:
            break
        best = row
    return best


def by_ucc(text: str) -> Chooser:
    """docs/user_guide.md: tokens; ucc_coll_score: ends included, ranges of ranks; no call may fit two tokens."""
    tokens = [token.split(":") for token in text.strip().removeprefix("UCC_TL_UCP_TUNE=").split("#")]

    def choose(collective: str, size: int, ranks: int, nodes: int) -> Choice:
        if collective == "reduce_scatter":  # ucc_coll_args_msgsize: dst.info.count
            size //= ranks
        fitting = []
        for name, sizes, *team, algorithm in tokens:
            least, most = sizes.split("-")
            fits = name == {"broadcast": "bcast"}.get(collective, collective)
            fits = fits and int(least) <= size and (most == "inf" or size <= int(most))
            for ranges in team:
                pairs = [one.split("-") for one in ranges.strip("[]").split(",")]
                fits = fits and any(int(a) <= ranks and (b == "inf" or ranks <= int(b)) for a, b in pairs)
            if fits:
                fitting.append((algorithm[1:], 0, 0))
        assert len(fitting) <= 1
        return fitting[0] if fitting else OPEN

    return choose


def by_ompi_6(text: str) -> Chooser:
    """coll_tuned_dynamic_file.c and _rules.c of Open MPI 6: the first entry that the ranks fit, its first rule that the
    size fits, else the fixed decision."""
    collectives: dict[str, Any] = json.loads(text)["collectives"]

    def choose(collective: str, size: int, ranks: int, nodes: int) -> Choice:
        for entry in collectives.get({"broadcast": "bcast"}.get(collective, collective), ()):
            if entry.get("comm_size_min", 0) <= ranks <= entry.get("comm_size_max", 2**31 - 1):
                for rule in entry["rules"]:
                    last = rule.get("msg_size_max", "inf")
                    if rule.get("msg_size_min", 0) <= size and (last == "inf" or size <= last):
                        return str(rule["alg"]), rule.get("faninout", 0), rule.get("seg_size", 0)
                return OPEN
        return OPEN

    return choose


LIBRARIES: dict[str, Callable[[str], Chooser]] = {
    "nccl": by_nccl, "ompi": by_ompi, "ucc": by_ucc, "ompi.json": by_ompi_6,
}  # fmt: skip


def told(name: str, rule: Rule | None) -> Choice:
    if rule is None:
        return OPEN
    given = rule.parameters
    if name == "nccl":
        protocols = ("simple", "ll", "ll128")
        return rule.algorithm, protocols.index(str(given.get("protocol", "simple"))), int(given.get("channels", 0))
    if name == "ompi":
        number = FORMATS[name].vocabulary.algorithms[rule.collective][rule.algorithm]
        return str(number), int(given.get("fanout", 0)), int(given.get("segment", 0))
    return rule.algorithm, 0, 0


@st.composite
def tables(draw: st.DrawFn, name: str) -> list[Rule]:
    """Rules at a few places, of sizes that do not overlap, gaps included."""
    words = FORMATS[name].vocabulary
    found = []
    for collective in draw(st.lists(st.sampled_from(sorted(words.algorithms)), min_size=1, max_size=3, unique=True)):
        places = [(None, None), (2, None), (3, None), (8, None), *([(8, 2), (16, 4)] if words.nodes else [])]
        if name == "ucc" and collective == "reduce_scatter":
            places = places[1:]
        for ranks, nodes in draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)):
            edges = sorted(draw(st.sets(st.integers(0, 2**34 // 24).map(lambda k: k * 24), min_size=2, max_size=6)))
            for first, after in zip(edges, [*edges[1:], None], strict=True):
                if draw(st.booleans()):
                    algorithm = draw(st.sampled_from(sorted(words.algorithms[collective])))
                    own = {}
                    if name == "nccl":
                        ll = algorithm in ("ring", "tree")
                        own = {"protocol": draw(st.sampled_from(["simple", "ll", "ll128"] if ll else ["simple"]))}
                    if name == "ompi":
                        own = {"segment": draw(st.sampled_from([0, 4096])), "fanout": draw(st.integers(0, 8))}
                    last = None if after is None else after - 1
                    found.append(Rule(collective, ranks, nodes, first, last, algorithm, own))
    return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=some(100))
@given(data=st.data())
def test_a_library_chooses_what_the_table_says(name: str, data: st.DataObject) -> None:
    """At both ends of every rule, beside them, and in gaps; and so does the table that is read back."""
    rules = data.draw(tables(name))
    if not rules:
        rules = [Rule("allreduce", None, None, 0, None, "ring")]
    texts = {suffix: (write(rules), read) for suffix, write, read in FORMATS[name].forms}
    for suffix, (text, read) in texts.items():
        a_library_chooses(name, rules, read(text), LIBRARIES.get(f"{name}{suffix}", LIBRARIES[name])(text))


def a_library_chooses(name: str, rules: Sequence[Rule], again: Sequence[Rule], library: Chooser) -> None:
    edges = {edge for rule in rules for edge in (rule.min_bytes, rule.max_bytes or 2**40)}
    sizes = {edge + shift for edge in edges for shift in (-1, 0, 1)}
    for collective in {rule.collective for rule in rules}:
        for size in sorted(size for size in sizes if size >= 0):
            for ranks, nodes in ((1, 1), (2, 1), (3, 1), (4, 1), (7, 1), (8, 1), (8, 2), (9, 1), (16, 4), (64, 8)):
                if name == "ucc" and collective == "reduce_scatter" and size % ranks:
                    continue  # no reduce-scatter has such a size
                wanted = told(name, chosen(rules, collective, size, ranks, nodes))
                case = (collective, size, ranks, nodes)
                assert library(*case) == wanted, case
                assert told(name, chosen(again, collective, size, ranks, nodes)) == wanted, case


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_refused_or_mean_what_the_library_takes_them_for(name: str) -> None:
    """Characters, words and lines of a good file changed at random; what is read is what the library would do."""
    rng = np.random.default_rng(7)
    rules = [Rule("allreduce", 8, None, 0, 4095, "ring"), Rule("allreduce", 8, None, 4096, None, "ring"),
             Rule("allreduce", None, None, 16, 2**20, "ring")]  # fmt: skip
    other = {"nccl": "tree", "ompi": "rabenseifner", "ucc": "dbt"}[name]
    rules[1] = Rule("allreduce", 8, None, 4096, None, other)
    good = FORMATS[name].write(rules)
    odd = [",", "#", "-1", "0", "9" * 30, "ring", "1e3", "\x00", "é", ":", "[", "08", "\n", " ", "@", "-", "inf"]
    read = 0
    for _ in range(some(400)):
        at = int(rng.integers(len(good)))
        text = good[:at] + str(rng.choice(odd)) + good[at + int(rng.integers(3)) :]
        try:
            found = FORMATS[name].read(text)
        except InputError as error:
            message = str(error)
        else:
            read, message = read + 1, ""
            for size in (0, 15, 16, 4095, 4096, 2**20, 2**20 + 1, 2**33):
                for ranks in (2, 8, 9):
                    wanted = told(name, chosen(found, "allreduce", size, ranks))
                    assert LIBRARIES[name](text)("allreduce", size, ranks, 1) == wanted, text
        assert "Traceback" not in message
    assert read


BAD = {
    "nccl": {
        "allreduce,0,10,ring,simple,-1,-1\n": "line 1",
        "allreduce,0,10,rnig,simple,-1,-1,-1\n": "unknown words for ring",
        "allgather,0,10,tree,simple,-1,-1,-1\n": "line 1, algorithm",
        "# x\nallreduce,0,10,ring,Simple,-1,-1,-1\n": "line 2, protocol",
        "all_reduce,0,10,ring,simple,-1,-1,-1\n": "for allreduce",
        "allreduce,0,1M,ring,simple,-1,-1,-1\n": "line 1, bytes",
        "allreduce,0,10,ring,simple,-1,-1,-1,-1,-1,-1\n": "8 to 10",
        "allgather,0,10,pat,ll,-1,-1,-1\n": "simple only",
        "allreduce,0,10,ring,simple,-1,-1,-1\nallreduce,5,20,tree,simple,-1,-1,-1\n": "same sizes",
        "allreduce,0,10,ring,simple,-1,-1," + " " * 300 + "-1\n": "two lines",
    },
    "ompi": {
        "": "line 1",
        "1\n2\n1\n0\n1\n0 4 0\n": "ends before",
        "1\n2\n1\n0\n1\n8 4 0 0\n": "line 6: the first message size must be 0",
        "1\n2\n1\n0\n1\n0 7 0 0\n": "algorithm's number",
        "1\n2\n1\n0\n1\n0 04 0 0\n": "line 6",
        "1\n2\n1\n8\n1\n0 4 0 0\n": "less than 8 ranks",
        "1\n2\n1\n0\n1\n0 4 0 0\n7\n": "no further",
        "1\n99\n": "a collective's number",
        "99999\n": "number of collectives",
        "1\n2\n99999999999\n": "number of communicator sizes",
        "1\n2\n2\n0\n0\n0\n0\n": "must ascend",
        "1\n2\n1\n0\n2\n0 4 0 0\n0 3 0 0\n": "message sizes must ascend",
        "1\n2\n2\n0\n0\n8\n1\n0 4 0 0\n": "ranges of ranks",
    },
    "ucc": {
        "": "one line",
        "allreduce:0-4k": "token 1",
        "allreduce:@rnig": "UCC has",
        "allreduce:@7": "@0 to @4",
        "allreduce:4k-0:@ring": "not below",
        "allreduce:0-4k:@ring#allreduce:4k-inf:@dbt": "same sizes",
        "allreduce:[4-8]:@ring": "one number of ranks",
        "reduce_scatter:0-4k:@ring": "one rank ends with",
        "allreduce:x:@ring": "token 1",
        "allreduce:0-99999999999999999999999:@ring": "token 1",
    },
}  # fmt: skip


BAD_JSON = {
    "": "is no JSON",
    "[1]": "rules of Open MPI",
    '{"rule_file_version": 3, "module": "tuned"}': "collectives: is missing",
    json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": {"all_reduce": []}}): "be one of allgather",
    **{
        json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": {"allreduce": entries}}): words
        for entries, words in (
            ([{"rules": [{"alg": "rnig"}]}], r"allreduce\[0\].rules\[0\].alg"),
            ([{"rules": [{"alg": 9}]}], "must be a number or one of basic_linear"),
            ([{"rules": [{"alg": True}]}], "alg"),
            ([{"comm_size_min": 4, "rules": []}], "a range of ranks"),
            ([{"comm_size_min": 4, "comm_size_max": 8, "rules": []}], "a range of ranks"),
            ([{"rules": []}, {"rules": []}], "an entry before it"),
            ([{"rules": [{"alg": 4, "msg_size_max": 9}, {"alg": 3, "msg_size_min": 5}]}], "same sizes"),
            ([{"rules": [{"alg": 4, "msg_size_min": -1}]}], "msg_size_min"),
            ([{"rules": [{"alg": 4, "segsize": 1}]}], "segsize"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_JSON)
def test_json_that_open_mpi_would_misread_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=BAD_JSON[text]):
        read_json(text)


def test_the_json_of_open_mpi_s_page_is_read() -> None:
    """docs/tuning-apps/collectives/tuned.rst with a name for a number, but for its range of ranks."""
    file = {"$schema": "tuned_schema.json", "rule_file_version": 3, "module": "tuned", "collectives": {"allreduce": [
        {"comm_size_min": 64, "comm_size_max": 64, "rules": [
            {"msg_size_min": 512, "msg_size_max": 511999, "alg": 2},
            {"msg_size_min": 512000, "msg_size_max": "inf", "alg": "recursive_doubling"}]}]}}  # fmt: skip
    first, second = read_json(json.dumps(file))
    assert (first.algorithm, first.ranks, first.min_bytes, first.max_bytes) == ("nonoverlapping", 64, 512, 511999)
    assert (second.algorithm, second.max_bytes) == ("recursive_doubling", None)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, cases in BAD.items() for text in cases])
def test_a_file_that_a_library_would_misread_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=re.escape(BAD[name][text])):
        FORMATS[name].read(text)


def test_the_examples_of_the_sources_are_read() -> None:
    """nccl_tuner.conf's lines that name neither pipelining nor buffers; UCC's defaults for allreduce (allreduce.h, its
    ends as they are meant) and reduce_scatter; Open MPI's users' file of open-mpi/ompi 12589 in miniature."""
    nccl = "allgather,0,4294967295,ring,simple,4,2,-1\nreduce,0,4294967295,ring,simple,-1,-1,-1\n"
    assert [rule.nodes for rule in FORMATS["nccl"].read(nccl)] == [2, None]
    found = FORMATS["ucc"].read("allreduce:0-4095:@0#allreduce:4k-inf:@1#reduce_scatter:@ring")
    assert [rule.algorithm for rule in found] == ["knomial", "sra_knomial", "ring"]
    (rule,) = FORMATS["ompi"].read("1 # one\n3 # alltoall\n1\n0\n2\n0 0 0 0\n1024 4 0 0 # linear_sync\n")
    assert (rule.algorithm, rule.min_bytes, rule.max_bytes) == ("linear_sync", 1024, None)


def test_rules_that_a_library_has_not_are_refused() -> None:
    for name, rule, words in (
        ("nccl", Rule("alltoall", None, None, 0, None, "ring"), "takes no rules"),
        ("nccl", Rule("allreduce", None, None, 0, None, "bruck"), "NCCL has"),
        ("ompi", Rule("allreduce", 8, 2, 0, None, "ring"), "by ranks alone"),
        ("ompi", Rule("allreduce", 8, None, 0, None, "ring", {"protocol": "ll"}), "no parameter"),
        ("ucc", Rule("reduce_scatter", None, None, 0, 10, "ring"), "one rank ends with"),
        ("ucc", Rule("allreduce", 0, None, 0, 10, "ring"), "ranks"),
        ("ucc", Rule("allreduce", None, None, 10, 5, "ring"), "max_bytes"),
    ):
        with pytest.raises(InputError, match=words):
            FORMATS[name].write([rule])


MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
ENVIRONMENT = {
    "MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "libmpi.so.40", "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}  # fmt: skip
PROGRAM = """
import sys
import numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
sent, got = numpy.ones(int(sys.argv[1]), "u1"), numpy.zeros(int(sys.argv[1]), "u1")
world.Allreduce(sent, got, op=MPI.SUM)
assert (got == world.size).all()
"""


BLOCKS = """
sent, got = numpy.ones(4 * int(sys.argv[1]), "u1"), numpy.zeros(int(sys.argv[1]), "u1")
world.Reduce_scatter_block(sent, got, op=MPI.SUM)
assert (got == world.size).all()
"""
BROADCAST = """
sent = numpy.full(int(sys.argv[1]), world.rank == 0, "u1")
world.Bcast(sent)
assert sent.all()
"""


def partners(folder: Path, size: int, rules: str, program: str = PROGRAM) -> dict[int, tuple[int, int]]:
    """To whom rank 0 of four sends in a call of this size: messages and bytes, as Open MPI counts them."""
    pytest.importorskip("mpi4py")
    if MPIRUN is None:
        pytest.skip("no mpirun of Open MPI")
    version = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, check=False).stdout
    if not re.search("Open ?MPI|OpenRTE", version):
        pytest.skip(f"{MPIRUN} is not Open MPI's")
    (folder / "rules").write_text(rules)
    options = {
        "coll_tuned_use_dynamic_rules": 1,
        "coll_tuned_dynamic_rules_filename": "rules",
        "pml_monitoring_enable": 2, "pml_monitoring_enable_output": 3, "pml_monitoring_filename": "messages",
        "btl": "self,vader,tcp",
    }  # fmt: skip
    words = [word for key, value in options.items() for word in ("--mca", key, str(value))]
    line = [MPIRUN, "-n", "4", *words, sys.executable, "-c", program, str(size)]
    with tempfile.TemporaryDirectory(prefix="ompi") as own:  # of short name, for sockets lie there; no other run's
        where = {**os.environ, **ENVIRONMENT, "TMPDIR": own}
        done = subprocess.run(line, cwd=folder, env=where, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    rows = [
        line.split("\t") for line in (folder / "messages.0.prof").read_text().splitlines() if line.startswith("I\t0")
    ]
    return {int(row[2]): (int(row[4].split()[0]), int(row[3].split()[0])) for row in rows}


@pytest.mark.long
def test_open_mpi_follows_the_file(tmp_path: Path) -> None:
    """Four ranks, 64 bytes by a ring: 2 (4 - 1) messages of 16 bytes, all to rank 1. 4 KiB by recursive doubling: all
    of it to ranks 1 and 2. 64 KiB by Rabenseifner's: half to one, a quarter to the other, and the same back. The same
    call with another file takes another algorithm."""
    rules = [Rule("allreduce", 4, None, 0, 1023, "ring"), Rule("allreduce", 4, None, 1024, 65535, "recursive_doubling"),
             Rule("allreduce", None, None, 0, None, "ring")]  # fmt: skip
    text = FORMATS["ompi"].write(rules)
    assert partners(tmp_path, 64, text) == {1: (6, 96)}
    assert partners(tmp_path, 4096, text) == {1: (1, 4096), 2: (1, 4096)}
    swapped = FORMATS["ompi"].write([Rule("allreduce", 4, None, 0, 1023, "recursive_doubling")])
    assert partners(tmp_path, 64, swapped) == {1: (1, 64), 2: (1, 64)}
    halving = FORMATS["ompi"].write([Rule("allreduce", 4, None, 0, None, "rabenseifner")])
    assert partners(tmp_path, 65536, halving) == {1: (2, 65536), 2: (2, 32768)}


@pytest.mark.long
def test_open_mpi_follows_the_file_in_blocks_and_segments(tmp_path: Path) -> None:
    """Recursive halving of 4 blocks of 4 KiB: two to rank 2, one to rank 1. A broadcast of 64 KiB down a pipeline in
    segments of 8 KiB: eight messages to rank 1 alone; in two chains from rank 1 and rank 3 on: to both."""
    beginning = PROGRAM[: PROGRAM.index("sent, got")]
    halving = FORMATS["ompi"].write([Rule("reduce_scatter_block", 4, None, 0, None, "recursive_halving")])
    assert partners(tmp_path, 4096, halving, beginning + BLOCKS) == {1: (1, 4096), 2: (1, 8192)}
    pipeline = FORMATS["ompi"].write([Rule("broadcast", 4, None, 0, None, "pipeline", {"segment": 8192})])
    assert partners(tmp_path, 65536, pipeline, beginning + BROADCAST) == {1: (8, 65536)}
    told = {"segment": 8192, "fanout": 2}
    chains = FORMATS["ompi"].write([Rule("broadcast", 4, None, 0, None, "chain", told)])
    assert partners(tmp_path, 65536, chains, beginning + BROADCAST) == {1: (8, 65536), 3: (8, 65536)}
