"""`synth solve`: real processes, their output, exit codes and what they leave behind."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from command import RECORD, flat, run, write_ring

from synth.cli import main
from synth.family import get_family

SHIPPED = Path(__file__).resolve().parents[3] / "instances"


def test_solve_prints_a_table_and_leaves_records(solved: Path) -> None:
    assert sorted(path.name for path in (solved / RECORD).parent.iterdir()) == ["bound.json", "pull.json"]
    data = json.loads((solved / RECORD).read_text())
    assert (data["objective"]["value"], data["bound"], data["instance_file"]) == (2.0, 2.0, "ring4.json")
    assert data["verified"] == {"ok": True, "facts": data["verified"]["facts"], "faults": []}
    assert data["verified"]["facts"]["timesteps"] == 2
    done = run("solve", "ring4.json", "-m", "bound", "-m", "pull", "--resume", cwd=solved)
    row = next(line for line in done.stdout.splitlines() if "pull" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")][2:5] == ["2", "2", "0"]
    assert "2 of 2 runs were done before" in done.stdout


def test_json_lines_and_nothing_else(tmp_path: Path) -> None:
    """Two files, three methods, one of which does not apply: four records and two, one a line, in order."""
    write_ring(tmp_path, "a")
    write_ring(tmp_path, "b", collective="allreduce")
    done = run("solve", ".", "-m", "pull", "-m", "xtree", "-m", "bound", "--json", cwd=tmp_path)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(r["instance"], r["method"]) for r in records] == [(i, m) for i in "ab" for m in ("pull", "xtree", "bound")]
    assert records[4]["termination"] == "unsupported"
    assert records[4]["objective"]["value"] is None
    stored = json.loads((tmp_path / "results/xtree/b/pull.json").read_text())
    assert stored == records[3]


def created(folder: Path) -> tuple[int, int]:
    status = (folder / RECORD).stat()
    return status.st_mtime_ns, status.st_ino


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("words", "skips"),
    [
        ((), True),
        (("--json", "-O", "restarts=10", "--time-limit", "1m", "--results", "./results"), True),
        (("--seed", "1"), False),
        (("--threads", "2"), False),
        (("--time-limit", "59"), False),
        (("-O", "restarts=3"), False),
        (("--results", "other"), False),
    ],
)
def test_resume(copy: Path, words: tuple[str, ...], skips: bool) -> None:
    """The defaults written out (10 restarts, one minute) are the same run; any other option is another."""
    before = created(copy)
    run("solve", "ring4.json", "-m", "pull", "--resume", *words, cwd=copy)
    changed = created(copy) != before or (copy / "other").exists()
    assert changed != skips


@pytest.mark.long
def test_another_question_leaves_the_optimum_its_record(tmp_path: Path) -> None:
    """3 chunks come in over 2 links of a ring of 4: 2 timesteps, not 1. Each question has its record, which is found
    again, packed too; a record at the address that such questions had before is still taken by --resume."""
    write_ring(tmp_path)
    solve = ("solve", "ring4.json", "-m", "ilp", "--resume")
    run(*solve, cwd=tmp_path)
    assert "ilp (highs), horizon=3" in run(*solve, "-O", "horizon=3", "--all", cwd=tmp_path).stdout
    run(*solve, "-O", "horizon=1", cwd=tmp_path, code=3)
    places = sorted((tmp_path / RECORD).parent.iterdir())
    assert [path.name for path in places] == ["ilp-highs-horizon=1.json", "ilp-highs-horizon=3.json", "ilp-highs.json"]
    for _ in range(2):
        for words, code in (((), 0), (("-O", "horizon=3"), 0), (("-O", "horizon=1"), 3)):
            assert "1 of 1 runs were done before" in run(*solve, *words, cwd=tmp_path, code=code).stdout
        assert "3 records hold" in run("check", "results", cwd=tmp_path).stdout
        assert "ended: infeasible" in run("show", places[0], cwd=tmp_path).stdout
        run("pack", "results", cwd=tmp_path)
    (tmp_path / "old" / "xtree" / "ring4").mkdir(parents=True)
    run(*solve, "-O", "horizon=1", "--results", "fresh", cwd=tmp_path, code=3)
    (tmp_path / "fresh" / "xtree" / "ring4" / places[0].name).rename(
        tmp_path / "old" / "xtree" / "ring4" / "ilp-highs.json"
    )
    done = run(*solve, "-O", "horizon=1", "--results", "old", cwd=tmp_path, code=3)
    assert "1 of 1 runs were done before" in done.stdout


@pytest.mark.parametrize("damage", ["instance", "truncated", "failed", "error", "types"])
def test_resume_runs_again(copy: Path, damage: str) -> None:
    """Another instance under the name, a damaged record, one that failed its check or died: all are done again."""
    data = json.loads((copy / RECORD).read_text())
    before = created(copy)
    match damage:
        case "instance":
            write_ring(copy, chunk_bytes=5.0)
        case "truncated":
            (copy / RECORD).write_bytes((copy / RECORD).read_bytes()[:-20])
        case "failed":
            data["verified"]["ok"] = False
        case "error":
            data["termination"] = "error"
        case _:
            data["verified"] = data["options"] = data["objective"] = None
    if damage not in ("instance", "truncated"):
        (copy / RECORD).write_text(json.dumps(data))
    run("solve", "ring4.json", "-m", "pull", "--resume", cwd=copy)
    assert created(copy) != before
    assert json.loads((copy / RECORD).read_text())["verified"]["ok"]


def test_seed_reproduces(tmp_path: Path) -> None:
    """Two files that say the same give one schedule under one seed and another one under another (9 * 8 transfers)."""
    for name in ("a", "b"):
        write_ring(tmp_path, name, network={"kind": "torus", "rows": 3, "cols": 3})
    solutions = []
    for files, seed in ((("a.json", "b.json"), 3), (("a.json",), 4)):
        done = run("solve", *files, "-m", "pull", "--json", "--seed", seed, "-O", "restarts=1", cwd=tmp_path)
        solutions += [json.loads(line)["solution"] for line in done.stdout.splitlines()]
    assert solutions[0] == solutions[1] != solutions[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope.json",), "nope.json: no such file or folder"),
        (("empty",), "empty: no instance files"),
        (("ring4.json", "-m", "magic"), "unknown method 'magic' of family xtree; one of bound, "),
        (("ring4.json", "--solver", "magic"), "unknown solver 'magic'; one of highs, "),
        (("ring4.json", "-m", "pull", "--solver", "highs"), "highs"),
        (("ring4.json", "-m", "pull", "-O", "x=1"), "unknown parameter 'x'; one of restarts"),
        (("ring4.json", "-m", "bound", "-O", "x=1"), "unknown parameter 'x'; it takes none"),
        (("ring4.json", "-m", "pull", "-O", "restarts=0"), "must be >= 1"),
        (("ring4.json", "-m", "pull", "-O", "restarts"), "expected key=value, got 'restarts'"),
        (("ring4.json", "--time-limit", "soon"), "--time-limit = 'soon': must be a duration > 0"),
        (("ring4.json", "--time-limit", "0"), "must be a duration > 0"),
        (("ring4.json", "--threads", "0"), "--threads"),
        (("ring4.json", "--seed", "-1"), "--seed"),
        (("ring4.json", "--gap", "x"), "--gap"),
        (("ring4.json", "--gap", "inf"), "--gap': Input should be less than or equal to 1"),
        (("ring4.json", "--gap", "nan"), "Invalid value for '--gap'"),
        (("ring4.json", "--frobnicate"), "No such option"),
        ((), "Missing argument"),
        (("bad.json",), "chunks = 0: must be >= 1"),
        (("results",), "format = 'synth-record/1': must be 'synth-instance/1'"),
        (("ring4.json", "twin/ring4.json"), "two instances are both named ring4"),
    ],
)
def test_bad_input_ends_with_2(
    copy: Path,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The console script's own function, called here to save a process for each of many cases."""
    (copy / "empty").mkdir()
    (copy / "twin").mkdir()
    write_ring(copy, "bad", chunks=0)
    write_ring(copy / "twin")
    before = created(copy)
    monkeypatch.chdir(copy)
    monkeypatch.setattr(sys, "argv", ["synth", "solve", *words])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # pytest keeps its own handlers
    with pytest.raises(SystemExit) as ended:
        main.run()
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert message in flat(printed.err.replace("│", " ")), printed.err
    assert printed.out == ""
    assert created(copy) == before


def test_all_bad_input_at_once(copy: Path) -> None:
    """Two bad files, an unknown method, a bad limit: four complaints, and the good file is not solved."""
    write_ring(copy, "bad", chunks=0)
    (copy / "worse.json").write_text("{")
    before = created(copy)
    words = ("ring4.json", "bad.json", "worse.json", "-m", "pull", "-m", "no", "--time-limit", "x")
    done = run("solve", *words, cwd=copy, code=2)
    assert [word for word in ("bad.json", "worse.json", "'no'", "--time-limit") if word in done.stderr] == [
        "bad.json",
        "worse.json",
        "'no'",
        "--time-limit",
    ]
    assert len(done.stderr.splitlines()) == 4
    assert created(copy) == before


def test_a_method_that_does_not_apply(tmp_path: Path) -> None:
    """Alone it is bad input, and the record says why; among others the batch goes on."""
    write_ring(tmp_path, collective="allreduce")
    done = run("solve", "ring4.json", "-m", "xtree", cwd=tmp_path, code=2)
    assert "use mirror_xtree" in flat(done.stderr)
    assert json.loads((tmp_path / "results/xtree/ring4/xtree.json").read_text())["termination"] == "unsupported"
    run("solve", "ring4.json", "-m", "xtree", "-m", "pull", cwd=tmp_path)


def test_results_that_cannot_be_written(copy: Path) -> None:
    """A file stands where the folder should be: one line with the reason before anything runs, no traceback."""
    (copy / "blocked").write_text("")
    done = run("solve", "ring4.json", "-m", "pull", "--results", "blocked", cwd=copy, code=2)
    assert "blocked is no folder" in flat(done.stderr)


def test_what_was_not_run_and_why(tmp_path: Path) -> None:
    """Without -m every method of the family ran or is named with a reason; with -m nothing is said."""
    synth_make = ("make", "fabric", "network=ring", "nodes=3", "collective=alltoall", "bytes=3KiB", "name=three")
    run(*synth_make, "-o", "three.json", cwd=tmp_path)
    said = run("solve", "three.json", cwd=tmp_path).stdout
    told = [line.partition(": ") for line in said.splitlines() if line.startswith("not run")]
    names = [name for _, _, listed in told for name in listed.split(", ")]
    tried = {path.stem.partition("-")[0] for path in (tmp_path / "results/fabric/three").glob("*.json")}
    assert sorted([*names, *tried]) == sorted(get_family("fabric").methods)
    assert "no alltoall" in next(why for why, _, listed in told if "ring" in listed.split(", "))
    assert all(listed and len(why) > len("not run, ") for why, _, listed in told)
    assert "not run" not in run("solve", "three.json", "-m", "direct", cwd=tmp_path).stdout
    with_solver = run("solve", write_ring(tmp_path), "--solver", "cpsat", cwd=tmp_path).stdout
    assert "not run, not with the solver that is asked for: ilp\n" in with_solver
