"""`synth submit`: what goes out as a table comes back as the same value; what is false or hostile is refused."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command import flat
from handed_in import JANE, PUBLISHED, ROOT, in_a_file, published, tables
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.family import family_names, get_family
from synth.library import best_known, submission
from synth.library.submission import RefusedError, Sender, compared
from synth.records import record as records
from synth.records.folder import beside
from synth.records.record import Record
from synth.records.verify import certify
from synth.text.input_file import InputFile

CASES = [
    "xtree/kautz-9x2-c1/multitree", "xtree/mesh-3x3-c1-allreduce/forest", "xtree/equimesh-2x3-c4-allreduce/tto",
    "fabric/star-6-scatter-6KiB/flow-highs", "fabric/ours/fabric/dgx1-allreduce-1KiB/forest-highs",
    "fabric/dgx-h100-x2-allreduce-1MiB-r4/forest-highs", "fabric/ours/fabric/ndv2-x2-gather-8KiB/pull",
    "harvest/demand-6-bulk-p2/candidates-highs", "harvest/bruck-alltoall-8-p1/misocp-highs",
    "harvest/swing-8-static-p1/misocp-highs",
    "mlfm/d3-n2l3m2/greedy", "mlfm/d3-pairs-24-leaf/ilp-highs", "mlfm/d4-n2l2m4/columns-cpsat",
    "optree/ring-8-w2/relay", "optree/mesh-3x3-w1/time_expanded-cpsat", "optree/torus-4x4-w2/time_expanded-cpsat",
    "bine/groups-6-4-6-alltoall/bine", "bine/torus-4x4-allreduce-large/bine", "bine/synthetic-jobs-broadcast/bine",
    "bine/groups-5-3-8-reduce/bine", "step/zb-p4-m8/search", "step/deepseek_train_kernels/issued",
    "topology/cubes-2-4x4x4/search", "topology/n36-d3-hops/search",
]  # fmt: skip


def test_every_family_reads_its_tables() -> None:
    ours = [name for name in family_names() if name not in ("faulty", "toy_broadcast")]
    assert {name for name in ours if not get_family(name).can("from_table")} == set()
    assert {case.partition("/")[0] for case in CASES} == set(ours)


@pytest.mark.parametrize("case", CASES)
def test_a_table_comes_back_as_the_same_value(case: str, tmp_path: Path) -> None:
    """And as a record that every part knows: it is written, read, checked, shown and printed again."""
    made = published(case)
    assert made.value is not None
    back = submission.schedule(in_a_file(made, tmp_path), tables(made, tmp_path), JANE)
    assert back.value == made.value
    path = records.record_path(tmp_path, made["family"], made["instance"], back["method"], None, back.question)
    read = records.read(records.write(back, path).path or path)
    assert read["kind"] == read["method"] == "submitted"
    assert read["submitted"]["by"] == "Jane Doe" == read.whose
    assert synth.check(read).faults == []
    assert read.describe()
    (tmp_path / "again").mkdir()
    again = submission.schedule(read.find_instance(), tables(read, tmp_path / "again"), JANE)
    assert again.value == made.value


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[synth.Instance, Record, str]:
    """A ring of six, a schedule of it in 5 steps (clockwise only), and its table."""
    folder = tmp_path_factory.mktemp("ring")
    raw = {
        "format": "synth-instance/1", "family": "xtree", "name": "ring6", "source": "test", "chunks": 1,
        "network": {"kind": "ring", "nodes": 6},
    }  # fmt: skip
    (folder / "ring6.json").write_text(json.dumps(raw))
    instance = synth.read(folder / "ring6.json")
    record = synth.solve(instance, "pull")
    assert record.value == 3
    return instance, record, tables(record, folder)[0].text


def clockwise(nodes: int) -> str:
    """Everybody passes on to the next: nodes - 1 steps. Link 2 v of a ring leads from v to v + 1."""
    rows = [(t + 1, 2 * v, (v - t) % nodes, 0) for t in range(nodes - 1) for v in range(nodes)]
    return "step,link,origin,chunk\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def handed_in(instance: synth.Instance, text: str, folder: Path) -> Record:
    (folder / "t.csv").write_text(text)
    return submission.schedule(instance, [InputFile(folder / "t.csv")], JANE)


def test_worse_equal_better_and_first(ring: tuple[synth.Instance, Record, str], tmp_path: Path) -> None:
    instance, three, text = ring
    five = handed_in(instance, clockwise(6), tmp_path)
    assert five.value == 5
    assert compared(five, []) == ["the first value known of this instance: 5"]
    assert compared(five, [three]) == ["worse than the best value known, 3 of pull: 5"]
    equal = handed_in(instance, text, tmp_path)
    assert compared(equal, [three]) == ["equals the best value known, 3 of pull"]
    assert compared(equal, [five])[0] == "BETTER than the best value known, 5 of Jane Doe: 3"


def test_a_false_schedule_is_refused_with_its_first_fault(
    ring: tuple[synth.Instance, Record, str], tmp_path: Path
) -> None:
    instance, _, text = ring
    lines = text.splitlines()
    with pytest.raises(RefusedError, match=r"t\.csv: end: node \d does not hold chunk \d"):
        handed_in(instance, "\n".join(lines[:-1]), tmp_path)
    first = lines[1].split(",")
    early = ",".join(["1", *lines[-1].split(",")[1:]])
    with pytest.raises(RefusedError, match=r"t\.csv: step 1"):
        handed_in(instance, "\n".join([lines[0], ",".join(first), early, *lines[2:-1]]), tmp_path)


HOSTILE = [
    ("", "needs a header line"),
    ("step,link\n1,2\n", "needs a header line"),
    ("step,link,origin,chunk\n", "needs a header line"),
    ("step,link,origin,chunk,evil\n1,0,0,0,1\n", "no column is called 'evil'; needs a header line"),
    ("step,lnk,origin,chunk\n1,0,0,0\n", "column link is missing; no column is called 'lnk'; did you mean link?"),
    ("step,link,origin,chunk\n1,0,0\n", "line 2, chunk: is missing"),
    ("step,link,origin,chunk\n1,0,0,0,7\n", "has more than the header's 4 columns"),
    ("step,link,origin,chunk\n0,0,0,0\n", "line 2, step = '0': must be in 1.."),
    ("step,link,origin,chunk\n1,12,0,0\n", "line 2, link = '12': must be in 0..11"),
    ("step,link,origin,chunk\n1,-1,0,0\n", "must be in 0..11"),
    ("step,link,origin,chunk\n1,0,0,1\n", "must be in 0..0"),
    ("step,link,origin,chunk\n1e3,0,0,0\n", "not a whole number"),
    ("step,link,origin,chunk\nnan,0,0,0\n", "not a whole number"),
    ("step,link,origin,chunk\n" + "9" * 5000 + ",0,0,0\n", "not a whole number"),
    ("step,link,origin,chunk\n9223372036854775807,0,0,0\n", "must be in 1.."),
    ("step,link,origin,chunk\n١,0,0,0\n", "not a whole number"),
    ("step,src,dst,link,origin,chunk\n1,0,3,0,0,0\n", "line 2, dst = '3': link 0 joins 0 to 1"),
    ("\x00\x01\x02", "needs a header line"),
    ('"step,link\n', "needs a header line"),
]


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_a_hostile_table_is_refused_with_its_line(
    text: str, said: str, ring: tuple[synth.Instance, Record, str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        handed_in(ring[0], text, tmp_path)
    assert said in flat(str(refused.value))
    assert "t.csv" in str(refused.value)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("case", CASES[1::3])
def test_cells_out_of_range_never_pass(case: str, tmp_path: Path) -> None:
    """Each cell that is read, replaced by something absurd: an error that names the file, or a refusal."""
    made = published(case)
    files = tables(made, tmp_path)
    for which, file in enumerate(files):
        rows = list(csv.reader(io.StringIO(file.text)))
        for column in range(len(rows[0])):
            for absurd in ("", "-1", "1e999", "999999999999", "zero", "0 0 0"):
                changed = [list(row) for row in rows]
                changed[len(rows) // 2][column] = absurd
                path = tmp_path / "changed.csv"
                path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in changed))
                given = [InputFile(path) if number == which else one for number, one in enumerate(files)]
                assert outcome(made, given, (path, files[0].path))


def outcome(made: Record, files: list[InputFile], named: tuple[Path, ...]) -> bool:
    """Whether the tables are refused with the name of one of these files, or hold what the check accepts: a column that
    follows from others and is not read, or what nobody needs."""
    try:
        back = submission.schedule(made.find_instance(), files, JANE)
    except (InputError, RefusedError) as error:
        return any(str(path) in str(error) for path in named)
    return synth.check(back).ok


def test_a_bound_comes_back_and_a_false_one_does_not(ring: tuple[synth.Instance, Record, str], tmp_path: Path) -> None:
    instance, three, _ = ring
    proven = synth.solve(instance, "bound")
    assert proven.bound == 3
    held: dict[str, Any] = {"bound": proven["bound"], "certificate": dict(proven.certificate or {})}
    path = tmp_path / "bound.json"
    path.write_text(json.dumps(held))
    back = submission.bound(instance, path, JANE)
    assert (back.bound, back.grade, back.value) == (3, "certified", None)
    assert compared(back, [proven]) == ["equals the best bound known, 3 of bound"]
    assert compared(back, [three, proven]) == ["equals the best bound known, 3 of pull"]
    assert synth.check(back).faults == []
    path.write_text(json.dumps(held | {"bound": 4.0}))
    with pytest.raises(RefusedError, match="bound"):
        submission.bound(instance, path, JANE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be one JSON object"),
        ("{}", "bound: must be a finite number"),
        ('{"bound": 1e999, "certificate": {"binding": "volume"}}', "finite number"),
        ('{"bound": "3", "certificate": {"binding": "volume"}}', "bound = '3': must be a finite number"),
        ('{"bound": true, "certificate": {"binding": "volume"}}', "must be a finite number"),
        ('{"bound": 3, "certificate": {}}', "certificate: must be an object"),
        ('{"bound": 3, "bound": 4, "certificate": {}}', "stands twice"),
        ('{"bound": 3, "certificate": {"binding": "volume"}, "instance_sha256": "0"}', "another instance"),
        ("[" * 5000, "not valid JSON"),
    ],
)
def test_a_hostile_certificate_is_refused(
    text: str, said: str, ring: tuple[synth.Instance, Record, str], tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises((InputError, RefusedError)) as refused:
        submission.bound(ring[0], tmp_path / "c.json", JANE)
    assert said in flat(str(refused.value))


@pytest.mark.parametrize("certificate", [
    {"binding": "cut", "inside": [99]}, {"binding": "cut", "inside": []}, {"binding": ["cut"]}, {"binding": "volume"},
    {"binding": "diameter", "pair": [0, 2**70]}, {"binding": "relaxation", "horizon": 10**9}, {"binding": "nothing"},
])  # fmt: skip
def test_certificates_that_prove_less_are_refused(
    certificate: dict[str, Any], ring: tuple[synth.Instance, Record, str], tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"bound": 4, "certificate": certificate}))
    with pytest.raises(RefusedError):
        submission.bound(ring[0], tmp_path / "c.json", JANE)


def test_a_bound_above_a_replayed_schedule_is_refused_even_if_its_certificate_passes(
    ring: tuple[synth.Instance, Record, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a check of certificates wrong, the replayed schedule would still say so; and so the other way round."""
    instance, three, _ = ring
    (tmp_path / "c.json").write_text(json.dumps({"bound": 4, "certificate": {"binding": "volume"}}))
    monkeypatch.setattr("synth.api.certify", lambda *_: [])
    above = submission.bound(instance, tmp_path / "c.json", JANE)
    with pytest.raises(RefusedError, match=r"ALARM: the replayed value 3 .* below the certified bound 4"):
        compared(above, [three])
    monkeypatch.setattr("synth.api.certify", certify)
    again = handed_in(instance, clockwise(6), tmp_path)
    assert compared(again, [above]) == ["the first value known of this instance: 5"]
    low = handed_in(instance, ring[2], tmp_path)
    with pytest.raises(RefusedError, match="ALARM"):
        compared(low, [above])


@pytest.mark.parametrize(
    ("by", "doi", "said"),
    [("", None, "--by"), ("x" * 201, None, "--by"), ("a\nb", None, "--by"), (" a", None, "--by"),
     ("a", "doi:10", "--doi"), ("a", "10.1145/" + "x" * 400, "--doi"), ("a", "10.1145/a b", "--doi")],
)  # fmt: skip
def test_names_that_no_record_takes(by: str, doi: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Sender(by, doi)


def test_the_command(ring: tuple[synth.Instance, Record, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, _, text = ring
    monkeypatch.chdir(tmp_path)
    Path("ring6.json").write_text(instance.to_json())
    Path("five.csv").write_text(clockwise(6))
    Path("three.csv").write_text(text)

    def submit(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["submit", "ring6.json", *words, "--by", "Jörg Ö."])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, flat(done.output)

    assert submit("--schedule", "five.csv")[1].startswith("the first value known of this instance: 5")
    code, said = submit("--schedule", "three.csv")
    assert (code, "BETTER than the best value known, 5 of Jörg Ö.: 3" in said) == (0, True)
    assert len(list(Path("results/xtree/ring6").glob("submitted-jorg-o-*.json"))) == 2
    [five] = [one for one in beside(Path("results/xtree/ring6")) if one.value == 5]
    with monkeypatch.context() as library:
        library.setattr(best_known, "in_library", lambda record, file: [five])
        said = submit("--schedule", "three.csv")[1]  # as good as one's own, and better than what is in the library
    assert "equals the best value known, 3 of Jörg Ö." in said
    assert "BETTER than the best value in the library, 5 of Jörg Ö.: 3" in said
    synth.solve(synth.read("ring6.json"), "pull", results="elsewhere/studies/mine/records/seed0-60s")
    said = submit("--schedule", "five.csv", "--results", "elsewhere")[1]
    assert said.startswith("worse than the best value known, 3 of pull: 5")
    Path("none.csv").write_text("\n".join(text.splitlines()[:-1]))
    code, said = submit("--schedule", "none.csv")
    assert (code, said.startswith("refused: none.csv: end: node")) == (1, True)
    for words in ((), ("--schedule", "five.csv", "--bound", "x.json"), ("--flows", "five.csv")):
        with pytest.raises(InputError):
            submit(*words)
    for words in (["check", "results"], ["show", "results/xtree/ring6"]):
        assert CliRunner().invoke(app, words[:2]).exit_code == 0 or words[0] == "show"


@cache
def of_every_kind() -> dict[tuple[str, str], Record]:
    """Of every kind of certificate the published bound that is checked quickest."""
    found: dict[tuple[str, str], Record] = {}
    for record in best_known.statements(PUBLISHED):
        held = record.certificate
        if held is None or record.stated_bound is None or record["termination"] == "infeasible":
            continue
        kind = str(held.get("binding") or held.get("argument") or record["family"])
        known = found.get((record["family"], kind))
        if known is None or record["seconds"]["check"] < known["seconds"]["check"]:
            found[record["family"], kind] = record
    return found


@pytest.mark.long
def test_every_kind_of_certificate_comes_back_and_proves_no_more(tmp_path: Path) -> None:
    """``show --certificate`` → ``submit --bound`` → the same bound; a bound a little above, and one of twice as much,
    are refused."""
    assert {family for family, _ in of_every_kind()} == {
        name for name in family_names() if name not in ("faulty", "toy_broadcast")
    }
    assert len(of_every_kind()) > 20
    for kind, stated in of_every_kind().items():
        assert stated.path is not None
        record = records.read(stated.path)
        done = CliRunner().invoke(app, ["show", str(record.path), "--certificate"])
        assert done.exit_code == 0, kind
        instance, path = in_a_file(record, tmp_path), tmp_path / "c.json"
        path.write_text(done.stdout)
        back = submission.bound(instance, path, JANE)
        assert (back.bound, back.grade) == (record.stated_bound, "certified"), kind
        assert synth.check(back).faults == [], kind
        held = json.loads(done.stdout)
        for more in (held["bound"] * 1.001 + 1, 2 * held["bound"] + 1):
            path.write_text(json.dumps(held | {"bound": more}))
            with pytest.raises(RefusedError):
                submission.bound(instance, path, JANE)


def test_an_algorithm_of_msccl_comes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, exported; and one that does something else than the instance asks for."""
    instance = synth.read(ROOT / "instances" / "fabric" / "full-4-allgather-4KiB.json")
    made = synth.solve(instance, "direct", results=tmp_path / "r")
    done = CliRunner().invoke(app, ["export", str(made.path), "-o", str(tmp_path / "a.xml")])
    assert done.exit_code == 0
    back = submission.algorithm(instance, tmp_path / "a.xml", JANE)
    assert back.value == made.value
    assert synth.check(back).faults == []
    text = (tmp_path / "a.xml").read_text()
    (tmp_path / "b.xml").write_text(text.replace('type="s"', 'type="r"', 1))
    with pytest.raises(RefusedError, match=r"b\.xml"):
        submission.algorithm(instance, tmp_path / "b.xml", JANE)
    other = synth.make("fabric", network="full", nodes=4, collective="alltoall", bytes="4KiB")
    with pytest.raises(RefusedError, match="does allgather, the instance asks for alltoall"):
        submission.algorithm(other, tmp_path / "a.xml", JANE)
    with pytest.raises(InputError, match="takes no algorithms"):
        submission.algorithm(synth.make("optree", nodes=4, wavelengths=1), tmp_path / "a.xml", JANE)


@pytest.mark.slow
def test_every_published_schedule_comes_back_from_its_table(tmp_path: Path) -> None:
    """All with at most 5,000 rows: thousands of schedules of all methods."""
    count = 0
    for stated in best_known.statements(PUBLISHED):
        if stated.value is None or stated.evidence != "replayed" or stated["kind"] == "bound":
            continue
        assert stated.path is not None
        facts = stated["verified"]["facts"]
        if max(facts.get(key, 0) for key in ("transfers", "circuits", "pieces", "flow_rows")) > 5000:
            continue
        record = records.read(stated.path)
        instance = record.find_instance()
        assert submission.schedule(instance, tables(record, tmp_path), JANE).value == record.value, record.path
        count += 1
    assert count > 1000
