"""``synth export``: every format from a record, models that solvers read, refusals that say why, memory."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from command import flat, run, write_ring
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.exchange import imported_algorithm, transfers_csv
from synth.exchange.algorithm import KINDS
from synth.exchange.file_check import check_file
from synth.exchange.lowering import Wish
from synth.exchange.record_export import (
    FEWER,
    FORMATS,
    algorithm_of,
    format_of,
    transfers_of,
    write_model,
    write_schedule,
)
from synth.exchange.transfers import Transfers
from synth.family import family_names, get_family
from synth.records.record import Record
from synth.text.quantities import shown

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def record(instance: str, method: str, **options: Any) -> Record:
    return synth.solve(synth.read(INSTANCES / f"{instance}.json"), method, time_limit=20, **options)


def ring_allgather(ranks: int, pieces: int, part_bytes: int, uneven: int = 0) -> Transfers:
    """A ring, every part in ``pieces`` pieces, the first of them ``uneven`` bytes longer; one after the other."""
    step, rank, k = (x.ravel() for x in np.meshgrid(np.arange(ranks - 1), np.arange(ranks), np.arange(pieces),
                                                    indexing="ij"))  # fmt: skip
    ends = np.linspace(0, part_bytes, pieces + 1).astype(np.int64)
    ends[1:-1] += uneven
    start = (step * pieces + k).astype(np.float64)
    return Transfers(
        "ring", "allgather", ranks, None, part_bytes, np.repeat(np.arange(ranks), pieces), np.tile(ends[:-1], ranks),
        np.tile(np.diff(ends), ranks), (rank - step) % ranks * pieces + k, rank, (rank + 1) % ranks,
        np.zeros(len(step), dtype=bool), start, start + pieces - 0.5, np.full(len(step), -1),
    )  # fmt: skip


def everybody_to_everybody(ranks: int) -> Transfers:
    """An allgather in which everybody sends to all others at once."""
    src, dst = np.nonzero(~np.eye(ranks, dtype=bool))
    zero = np.zeros(len(src))
    return Transfers(
        "direct", "allgather", ranks, None, 1, np.arange(ranks), np.zeros(ranks, dtype=np.int64),
        np.ones(ranks, dtype=np.int64), src, src, dst, zero.astype(bool), zero, zero + 1, zero.astype(np.int64) - 1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with records of a ring of four: ``pull.json`` and ``bound.json``."""
    folder = tmp_path_factory.mktemp("solved")
    ring = synth.read(write_ring(folder))
    for method in ("pull", "bound"):
        written = synth.solve(ring, method, results=folder).path
        assert written is not None
        for file in written.parent.glob(f"{method}.*"):
            file.rename(folder / file.name)
    return folder


def export(*words: object) -> tuple[str, str]:
    """What ``synth export`` says on both channels. Raises what it raises."""
    done = CliRunner().invoke(app, ["export", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0
    return flat(done.stdout), flat(done.stderr)


def test_an_algorithm_for_each_executor(solved: Path, tmp_path: Path) -> None:
    out, err = export(solved / "pull.json", "-o", tmp_path / "a.xml")
    assert "for azure: 28 steps in 20 thread blocks, chunks a part: 1" in err
    assert "a.xml written (msccl-xml:" in out
    assert check_file(tmp_path / "a.xml", executor="azure").faults == ()
    words = ("--in-place", "--instances", 2, "--executor", "msccl", "--fuse", "--channels", 2)
    export(solved / "pull.json", "-o", tmp_path / "b.xml", *words)
    checked = check_file(tmp_path / "b.xml", executor="msccl")
    assert checked.faults == ()
    assert "allgather in place, 4 gpus" in checked.summary
    _, err = export(solved / "pull.json", "-o", tmp_path / "c.xml", "--no-check")
    assert "; not checked" in err


@pytest.mark.parametrize("suffix", [".xml", ".json"])
def test_an_export_says_how_long_it_takes_beside_the_schedule(suffix: str, tmp_path: Path) -> None:
    """As ``synth import`` finds it: pieces as they are keep the time but for little, all in one chunk a part do not."""
    machine = synth.make("fabric", network="torus", rows=2, cols=3, collective="allgather", bytes="6MiB")
    (tmp_path / "torus.json").write_text(machine.to_json())
    instance = synth.read(tmp_path / "torus.json")
    path = synth.solve(instance, "forest", results=tmp_path / "results").path
    taken = []
    for words in ((), ("--chunks", 1)):
        out = tmp_path / f"a{suffix}"
        [(exported, scheduled)] = re.findall(
            r"as exported it takes (.+?) on \S+, as scheduled (\S+ \S+)", export(path, "-o", out, *words)[1]
        )
        again = imported_algorithm.run(out, instance).value
        assert again is not None
        assert exported == shown(again, "s")
        taken.append((exported, scheduled))
    (asked, scheduled), (rounded, same) = [[float(words.split()[0]) for words in row] for row in taken]
    assert scheduled == same
    assert scheduled <= asked < 1.02 * scheduled < rounded


def test_the_time_of_a_plan_is_known_whatever_its_file_is_called(tmp_path: Path) -> None:
    instance = synth.make("fabric", network="torus", rows=2, cols=2, collective="allgather", bytes="4KiB")
    (tmp_path / "torus.json").write_text(instance.to_json())
    path = synth.solve(synth.read(tmp_path / "torus.json"), "direct", results=tmp_path).path
    assert "as exported it takes" in export(path, "-f", "mscclpp", "-o", tmp_path / "torus.plan")[1]


def test_moves_traces_and_a_plan(solved: Path, tmp_path: Path) -> None:
    export(solved / "pull.json", "-o", tmp_path / "moves.csv")
    rows = list(csv.DictReader((tmp_path / "moves.csv").open()))
    assert len(rows) == 12
    assert set(rows[0]) == set(transfers_csv.COLUMNS)
    _, err = export(solved / "pull.json", "-f", "chakra", "-o", tmp_path / "trace")
    assert "all-gather-implementation-custom" in err
    names = [name for r in range(4) for name in (f"trace.{r}.et", f"trace.workload.{r}.et")]
    assert sorted(path.name for path in tmp_path.glob("trace*")) == sorted([*names, "trace.system.json"])
    export(solved / "pull.json", "-o", tmp_path / "moves.goal")
    text = (tmp_path / "moves.goal").read_text()
    assert text.startswith("num_ranks 4\n")
    assert text.count(": send ") == text.count(": recv ") == 12
    export(solved / "pull.json", "-f", "mscclpp", "-o", tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["collective"] == "allgather"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pull.json", "-o", "a.txt"), "--format: say which: one of msccl-xml, mscclpp"),
        (("pull.json", "-o", "a.xml", "-f", "gif"), "--format = 'gif': must be one of"),
        (("pull.json", "-o", "a.xml", "--executor", "mscclpp"), "msccl-xml is read by azure, msccl"),
        (("pull.json", "-o", "a.csv", "--executor", "azure"), "csv is for no executor in particular"),
        (("pull.json", "-o", "a.lp"), "pull is a reference, no program: it has no model"),
        (("pull.json", "-o", "nowhere/a.xml"), "cannot be written"),
        (("pull.json", "-o", "nowhere/a.csv"), "cannot be written"),
        (("pull.json", "-o", "nowhere/a.goal"), "cannot be written"),
        (("pull.json", "-o", "a.goal", "--channels", "2"), "--channels: has no meaning for goal"),
        (("pull.json", "-o", "a.xml", "--protocol", "ll"), "--protocol = 'll': must be one of LL, LL128, Simple"),
        (("pull.json", "-o", "a.csv", "--in-place"), "--in-place: has no meaning for csv"),
        (("pull.json", "-o", "a.json", "-f", "mscclpp", "--fuse"), "--fuse: has no meaning for mscclpp"),
        (("pull.json", "-o", "a.lp", "--chunks", "3"), "--chunks: has no meaning for lp"),
        (("pull.json", "-o", "a.xml", "--nth", "3"), "--nth: has no meaning for msccl-xml"),
        (("bound.json", "-o", "a.xml"), "holds no schedule"),
        (("none.json", "-o", "a.xml"), "none.json"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], said: str, solved: Path, tmp_path: Path) -> None:
    name, option, out, *others = words
    with pytest.raises(InputError) as refused:
        export(solved / name, option, tmp_path / out, *others)
    assert said in flat(str(refused.value))


@pytest.mark.slow
def test_the_command_as_a_process(tmp_path: Path) -> None:
    write_ring(tmp_path)
    run("solve", "ring4.json", "-m", "pull", cwd=tmp_path)
    run("export", "results/xtree/ring4/pull.json", "-o", "a.xml", cwd=tmp_path)
    assert "allgather out of place, 4 gpus" in flat(run("check", "a.xml", cwd=tmp_path).stdout)
    assert "--executor" in flat(run("export", "--help", cwd=tmp_path).stdout)


def test_a_record_whose_schedule_is_none_is_not_exported() -> None:
    good = record("fabric/full-4-allgather-4KiB", "direct")
    assert good.packed is not None
    late = {**good.packed, "start_steps": np.asarray(good.packed["start_steps"]) * 0}
    forged = Record({**good.data}, {**late, "link": np.roll(good.packed["link"], 1)}, None, good.instance)
    with pytest.raises(InputError, match="its schedule is none"):
        transfers_of(forged)


@pytest.mark.long
@pytest.mark.parametrize(
    ("executor", "schedule", "wish", "words"),
    [
        ("msccl", ring_allgather(4, 1100, 1100), Wish(), r"elements .* at most 4095"),
        ("azure", ring_allgather(3, 4000, 4000), Wish(), "azure takes 32 channels with 32 peers"),
        ("msccl", everybody_to_everybody(120), Wish(), "msccl takes 216 thread blocks a rank"),
        ("azure", ring_allgather(9, 1, 4000), Wish(chunks=4000), r"an offset of \d+: at most 32767"),
    ],
)
def test_what_an_executor_cannot_hold_is_refused_with_the_limit(
    executor: str, schedule: Transfers, wish: Wish, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        algorithm_of(schedule, executor, wish)


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "executor", "ranks", "pieces", "limit"),
    [
        ("msccl-xml", "msccl", 4, 1100, "at most 4095"),
        pytest.param("mscclpp", None, 3, 3000, "MAX_OPERATION = 64", marks=pytest.mark.slow),
    ],
)
def test_more_pieces_than_an_executor_takes_are_rounded_and_it_is_said(
    form: str, executor: str | None, ranks: int, pieces: int, limit: str, tmp_path: Path
) -> None:
    """Without a wish the largest power of two that fits; a number that is wished is kept or refused."""
    large, path = ring_allgather(ranks, pieces, pieces), tmp_path / f"a{FORMATS[form].suffix}"
    notes = write_schedule(large, FORMATS[form], path, executor)
    assert re.match(rf"as the pieces ask, {pieces:,} chunks a part, it is too large: .*{limit}", notes[0])
    [chunks] = re.findall(r"rounded to (\d+) equal chunks a part", " ".join(notes))
    assert int(chunks) == 512
    assert notes[-1] == "rounded it can take far longer than the schedule"
    assert check_file(path, collective="allgather").faults == ()
    path.unlink()
    with pytest.raises(InputError, match=limit) as refused:
        write_schedule(large, FORMATS[form], path, executor, Wish(chunks=pieces))
    assert refused.value.hint == FEWER
    assert not list(tmp_path.iterdir())


def test_thread_blocks_are_split_at_the_executor_s_steps() -> None:
    for executor, steps in (("azure", 64), ("msccl", 256)):
        algorithm, _ = algorithm_of(ring_allgather(4, 100, 100), executor, Wish(in_place=True, join=True))
        length = np.diff(algorithm.step_start)
        assert length.max() <= steps < 300
        assert len(length) == 4 * 2 * -(-(200 + -(-100 // 71)) // steps)  # the last hop goes on to nobody: joined


def test_what_moves_side_by_side_goes_in_one_step() -> None:
    """Recursive doubling on 8 ranks with a piece a part: 1, 2 and 4 parts at once, one step each."""
    ranks, rows = 8, []
    for bit in (1, 2, 4):
        rows += [(part, r, r ^ bit, bit) for r in range(ranks) for part in range(ranks) if (part ^ r) < bit]
    piece, src, dst, begin = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    one = np.ones(ranks, dtype=np.int64)
    schedule = Transfers(
        "doubling", "allgather", ranks, None, 1, np.arange(ranks), one - 1, one, piece, src, dst,
        np.zeros(len(piece), dtype=bool), begin.astype(float), begin + 1.0, np.full(len(piece), -1),
    )  # fmt: skip
    algorithm, _ = algorithm_of(schedule, "azure", Wish(in_place=True, join=True))
    count = algorithm.count[algorithm.kind != KINDS.index("nop")]
    assert (len(count), sorted(set(count.tolist()))) == (8 * 2 * 3, [1, 2, 4])


def test_steps_are_split_at_the_executor_s_count() -> None:
    algorithm, _ = algorithm_of(ring_allgather(3, 1, 1000), "azure", Wish(chunks=200))
    assert algorithm.count.max() <= 71
    assert algorithm.chunks == 200


@pytest.mark.parametrize(("chunks", "expected"), [(None, 8), (8, 8), (16, 16), (5, 5)])
def test_pieces_of_whole_chunks_are_not_rounded(chunks: int | None, expected: int) -> None:
    algorithm, notes = algorithm_of(ring_allgather(3, 8, 80), "azure", Wish(chunks=chunks))
    assert algorithm.chunks == expected
    assert any("rounded" in note for note in notes) == (chunks == 5)


@pytest.mark.parametrize("size", [2**20, 2**30])
def test_pieces_that_differ_by_a_byte_are_a_chunk_each(size: int) -> None:
    """1,488 divide neither; two thirds as many chunks are near the ends of all pieces, too, and of unequal use."""
    algorithm, notes = algorithm_of(ring_allgather(2, 1488, size), "msccl", Wish())
    assert algorithm.chunks == 1488
    assert set(algorithm.count[algorithm.kind == KINDS.index("s")].tolist()) == {1}
    assert "rounded to 1488 equal chunks" in notes[0]


def test_pieces_of_odd_bytes_are_rounded_and_it_is_said() -> None:
    algorithm, notes = algorithm_of(ring_allgather(3, 4, 10**9 + 7, uneven=3), "azure", Wish())
    assert algorithm.chunks == 4
    assert "pieces have unequal bytes: rounded to 4 equal chunks a part" in notes[0]
    coarse, notes = algorithm_of(ring_allgather(3, 64, 10**9 + 7), "azure", Wish(chunks=4))
    assert coarse.chunks == 4
    assert "pieces smaller than half a chunk were merged" in notes[0]
    with pytest.raises(InputError, match="at most 4096"):
        algorithm_of(ring_allgather(3, 4, 64), "azure", Wish(chunks=5000))


def test_nothing_to_do_is_an_algorithm_too() -> None:
    for collective in ("allgather", "allreduce", "broadcast"):
        alone = synth.make("fabric", network="full", nodes=4, ranks="2", collective=collective, bytes="1KiB")
        algorithm, _ = algorithm_of(transfers_of(synth.solve(alone, "direct")), "azure")
        assert algorithm.ranks == 1


@pytest.mark.parametrize("form", ["msccl-xml", "mscclpp", "chakra", "goal", "csv"])
def test_nothing_to_do_leaves_in_every_format(form: str, tmp_path: Path) -> None:
    """The rank copies its input; as exported it takes no time, whatever number of chunks is asked."""
    alone = synth.make("fabric", network="full", nodes=2, ranks="1", collective="broadcast", bytes="1000")
    record = synth.solve(alone, "direct")
    for chunks in (None, 6) if form in ("msccl-xml", "mscclpp") else (None,):
        path = tmp_path / f"alone{FORMATS[form].suffix}"
        write_schedule(transfers_of(record), FORMATS[form], path, wish=Wish(chunks=chunks))
        if form in ("msccl-xml", "mscclpp"):
            assert imported_algorithm.compared(path, record).startswith("as exported it takes 0 s")


PROGRAMS = [
    ("xtree/mesh-2x3-c1-allreduce", "ilp", "highs", {"counting": "off", "warm_start": "off"}),
    ("xtree/ring-8-c1", "cpsat", "cpsat", {"counting": "off", "warm_start": "off", "relaxation": "off"}),
    ("optree/ring-4-w1", "rwa", "highs", {}), ("optree/ring-8-w2", "stages", "highs", {"by": "program"}),
    ("optree/mesh-3x3-w1", "time_expanded", "cpsat", {}), ("harvest/recursive-doubling-4-p1", "misocp", "highs", {}),
    ("bine/groups-13-root5-broadcast", "tree_ilp", "highs", {}), ("fabric/star-6-scatter-6KiB", "flow", "highs", {}),
    ("bine/groups-3-3-2-allgather-butterfly", "placement", "cpsat", {}), ("mlfm/d3-n2l3m2", "ilp", "highs", {}),
    ("mlfm/d3-n2l3m2", "cpsat", "cpsat", {}), ("mlfm/d3-n2l3m2", "min_congestion", "cpsat", {}),
    ("topology/cubes-2-2x2x2", "milp", "highs", {}), ("step/1f1b-p2-m4", "order", "cpsat", {}),
]  # fmt: skip


def asked(instance: str, method: str, solver: str) -> Record:
    """A record as far as its model needs it; nothing has run."""
    problem = synth.read(INSTANCES / f"{instance}.json")
    options = {"time_limit_s": 20.0, "relative_gap": 1e-4, "threads": 1, "seed": 0, "method": {}}
    data = {"family": problem.family, "method": method, "kind": "program", "solver": solver, "options": options}
    return Record(data, None, None, problem)


@pytest.mark.parametrize(("instance", "method", "solver", "own"), PROGRAMS)
def test_models_are_written_and_read_by_solvers(
    instance: str, method: str, solver: str, own: dict[str, str], tmp_path: Path
) -> None:
    one, found = asked(instance, method, solver), []
    if solver == "cpsat":
        write_model(one, "cpsat", tmp_path / "model.pbtxt", parameters=own)
        assert "variables" in (tmp_path / "model.pbtxt").read_text()
        with pytest.raises(InputError, match=r"a CP-SAT model .* has no MPS form"):
            write_model(one, "mps", tmp_path / "model.mps", parameters=own)
        return
    for form in ("mps", "lp"):
        path = tmp_path / f"model.{form}"
        write_model(one, form, path, parameters=own)  # type: ignore[arg-type]
        highs: Any = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("time_limit", 20.0)
        assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
        highs.run()
        found.append((highs.getModelStatus(), highs.getObjectiveValue()))
    assert found[0][0] == found[1][0]  # xtree's first horizon has no solution
    assert found[0][0] == highspy.HighsModelStatus.kOptimal or method == "ilp"
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6, abs=1e-9)
    if method == "tree_ilp":
        value = record(instance, method).value
        assert value is not None
        assert found[0][1] * one.find_instance().bytes == pytest.approx(value)  # type: ignore[attr-defined]


def test_every_family_with_programs_has_a_model_that_is_tried() -> None:
    tried = {instance.partition("/")[0] for instance, *_ in PROGRAMS}
    ours = {name for name in family_names() if get_family(name).instance.startswith("synth_models.")}
    assert tried == {name for name in ours if any(m.kind == "program" for m in get_family(name).methods.values())}


def test_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model to a solver: bounds, references or algorithms of its own sufficed"):
        write_model(asked("xtree/equimesh-2x3-c1", "ilp", "highs"), "lp", tmp_path / "model.lp")
    with pytest.raises(InputError, match="1 model: there is no number 7"):
        write_model(asked("bine/groups-13-root5-broadcast", "tree_ilp", "highs"), "lp", tmp_path / "m.lp", number=7)
    with pytest.raises(InputError, match="for the problem tree"):
        write_model(asked("bine/groups-6-4-6-alltoall", "tree_ilp", "highs"), "lp", tmp_path / "m.lp")
    with pytest.raises(InputError, match="cannot be written"):
        write_model(asked("optree/ring-4-w1", "rwa", "highs"), "lp", tmp_path / "nowhere/m.lp")


def test_the_suffix_says_the_format() -> None:
    assert {format_of(None, Path(f"x{one.suffix}")).name for one in FORMATS.values()} == set(FORMATS)


MILLION = """
import resource, sys
from pathlib import Path
from exchange.test_export import ring_allgather
from synth.exchange import msccl_xml
from synth.exchange.file_check import check_file
from synth.exchange.record_export import FORMATS, write_schedule
from synth.exchange.lowering import Limits, Wish, lower
schedule = ring_allgather(64, 248, 248 * 1024)
folder = Path(sys.argv[1])
algorithm, _ = lower(schedule, Limits("any", count=71), Wish(join=True))
msccl_xml.write(algorithm, folder / "million.xml")
write_schedule(schedule, FORMATS["csv"], folder / "million.csv")
print(len(schedule.piece), algorithm.steps, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_million_transfers_take_less_than_two_gigabytes(tmp_path: Path) -> None:
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", MILLION, tmp_path], capture_output=True, text=True, env=where)
    assert done.returncode == 0, done.stderr
    moves, steps, kilobytes = map(int, done.stdout.split())
    assert moves == 999_936
    assert steps > 1.9 * moves  # what goes on to nobody is joined
    assert kilobytes < 2_000_000
    assert len(re.findall("\n", (tmp_path / "million.csv").read_text())) == moves + 1
