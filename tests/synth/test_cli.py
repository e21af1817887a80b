"""The command as a person or a script meets it: real processes, their output, exit codes and what they leave behind."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synth.cli import main

SYNTH = Path(sys.executable).with_name("synth")
SHIPPED = Path(__file__).resolve().parents[2] / "instances"


def run(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`synth words…` in ``cwd``; must end with ``code`` and without a traceback."""
    done = subprocess.run([SYNTH, *map(str, words)], cwd=cwd, text=True, capture_output=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def flat(text: str) -> str:
    """One line of text: where a table or a narrow terminal folds it does not matter."""
    return " ".join(text.split())


def write_ring(folder: Path, name: str = "ring4", nodes: int = 4, **other: Any) -> Path:
    data = {
        "format": "synth-instance/1", "family": "xtree", "name": name, "source": "test",
        "network": {"kind": "ring", "nodes": nodes}, "chunks": 1,
    }  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(data | other))
    return path


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ring4.json and its records by `bound` and `pull` (2 timesteps: 3 chunks over 2 links)."""
    folder = tmp_path_factory.mktemp("cli")
    write_ring(folder)
    run("solve", "ring4.json", "-m", "bound", "-m", "pull", cwd=folder)
    return folder


@pytest.fixture
def copy(solved: Path, tmp_path: Path) -> Path:
    """The solved folder, to be changed."""
    return shutil.copytree(solved, tmp_path / "copy")


RECORD = Path("results/xtree/ring4/pull.json")
BOUND = RECORD.with_name("bound.json")


# --- catalogue and make ------------------------------------------------------------------------------------------


def test_families(tmp_path: Path) -> None:
    text = flat(run("families", cwd=tmp_path).stdout)
    for word in ("xtree", "bound", "mirror_xtree", "pull", "ilp", "restarts=10", "timesteps"):
        assert word in text


def test_solvers(tmp_path: Path) -> None:
    text = flat(run("solvers", cwd=tmp_path).stdout)
    for word in ("highs", "cpsat", "scip", "gurobi", "installed", "licence"):
        assert word in text


def test_instances(solved: Path, tmp_path: Path) -> None:
    assert "equimesh-2x3-c4" in run("instances", "xtree", "--folder", SHIPPED, cwd=tmp_path).stdout
    assert "no such folder" in flat(run("instances", cwd=tmp_path, code=2).stderr)
    assert "unknown family 'tree'" in flat(run("instances", "tree", "--folder", SHIPPED, cwd=tmp_path, code=2).stderr)


def test_no_words_and_version(tmp_path: Path) -> None:
    assert "solve" in run("--help", cwd=tmp_path).stdout
    assert run("--version", cwd=tmp_path).stdout.startswith("synth ")
    assert run("solv", cwd=tmp_path, code=2).stderr


def test_make_then_solve(tmp_path: Path) -> None:
    """The issue's own words, from parameters to a verified record: EquiMesh 2x3, C = 4 has the receive bound 5."""
    words = ("network=equimesh", "rows=2", "cols=3", "chunks=4", "collective=allgather")
    made = run("make", "xtree", *words, cwd=tmp_path)
    name = "equimesh-2x3-c4"
    assert name in made.stdout
    instance = json.loads((tmp_path / f"{name}.json").read_text())
    assert instance["network"]["kind"] == "equimesh"
    lines = run("solve", f"{name}.json", "-m", "bound", "-m", "pull", "--json", cwd=tmp_path).stdout.splitlines()
    bound, pull = map(json.loads, lines)
    assert bound["bound"] == 5.0
    assert pull["objective"]["value"] == 5.0
    assert pull["verified"]["ok"]


def test_make_to_standard_output_and_elsewhere(tmp_path: Path) -> None:
    words = ("make", "xtree", "network=ring", "nodes=5", "bidirectional=off", "name=r")
    text = run(*words, "-o", "-", cwd=tmp_path).stdout
    assert json.loads(text)["name"] == "r"
    assert list(tmp_path.iterdir()) == []
    run(*words, "-o", "a/b/r.json", cwd=tmp_path)
    assert (tmp_path / "a/b/r.json").read_text() == text
    assert "cannot be written" in run(*words, "-o", "a", cwd=tmp_path, code=2).stderr


def test_make_from_csv(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("src,dst,bandwidth\n0,1,1e9\n1,2,\n2,0,2e9\n")
    run("make", "xtree", "links=l.csv", "chunks=2", "name=n", cwd=tmp_path)
    record = json.loads(run("solve", "n.json", "-m", "pull", "--json", cwd=tmp_path).stdout)
    assert record["objective"]["value"] == 4.0  # one-way ring of 3: 2 nodes' 2 chunks over one link


def test_make_names_every_fault(tmp_path: Path) -> None:
    done = run("make", "xtree", "network=mesh", "rows=x", "chunks=0", "colour=red", cwd=tmp_path, code=2)
    *faults, hint = sorted(done.stderr.splitlines())
    assert sorted(line.split()[4].rstrip(":") for line in faults) == ["chunks", "colour", "cols", "rows"]
    assert hint == "what each key means: synth make xtree --help"
    for words in (("make", "xtree", "rows"), ("make", "tree")):
        assert run(*words, cwd=tmp_path, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_help_lists_a_familys_keys(tmp_path: Path) -> None:
    """Every key with what it takes, its default and its unit, and examples that work."""
    text = flat(run("make", "xtree", "--help", cwd=tmp_path).stdout)
    for words in ("| reduce_scatter | allreduce", "│ whole number >= 1 │ 1 │ equal chunks", "bytes/s (default"):
        assert words in text
    example = text.partition("┘ synth make xtree ")[2].partition(" synth make")[0]
    run("make", "xtree", *example.split(), "-o", "x.json", cwd=tmp_path)
    assert "bandwidth" not in run("make", "--help", cwd=tmp_path).stdout


def test_a_family_lists_its_methods_own_parameters(tmp_path: Path) -> None:
    text = flat(run("families", "xtree", cwd=tmp_path).stdout)
    assert "│ horizon │ whole number >= 1 │ │ decide this number of timesteps only" in text
    assert "│ ilp, cpsat │" in text
    assert "mlfm" not in text
    assert "unknown family 'tree'" in run("families", "tree", cwd=tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("synth make xt", ["xtree"]),
        ("synth families o", ["optree"]),
        ("synth solve --solver s", ["scip"]),
        ("synth solve ring4.json -m pu", ["pull"]),
        ("synth make xtree -o x", []),  # a file: the shell's own business
    ],
)
def test_completion(
    words: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {
        "_SYNTH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main.app(prog_name="synth")
    assert capsys.readouterr().out.split() == expected


# --- solve -------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("words", "skips"),
    [
        ((), True), (("--json", "-O", "restarts=10", "--time-limit", "1m", "--results", "./results"), True),
        (("--seed", "1"), False), (("--threads", "2"), False), (("--time-limit", "59"), False),
        (("-O", "restarts=3"), False),
        (("--results", "other"), False),
    ],
)  # fmt: skip
def test_resume(copy: Path, words: tuple[str, ...], skips: bool) -> None:
    """The defaults written out (10 restarts, one minute) are the same run; any other option is another."""
    before = created(copy)
    run("solve", "ring4.json", "-m", "pull", "--resume", *words, cwd=copy)
    changed = created(copy) != before or (copy / "other").exists()
    assert changed != skips


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
        (("nope.json",), "nope.json: no such file or folder"), (("empty",), "empty: no instance files"),
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
        (("ring4.json", "--seed", "-1"), "--seed"), (("ring4.json", "--gap", "x"), "--gap"),
        (("ring4.json", "--frobnicate"), "No such option"), ((), "Missing argument"),
        (("bad.json",), "chunks = 0: must be >= 1"),
        (("results",), "format = 'synth-record/1': must be 'synth-instance/1'"),
        (("ring4.json", "twin/ring4.json"), "two instances are both named ring4"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_2(
    copy: Path, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
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
        "bad.json", "worse.json", "'no'", "--time-limit",
    ]  # fmt: skip
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
    """A file stands where the folder should be: one line with the reason, exit 1, no traceback."""
    (copy / "blocked").write_text("")
    done = run("solve", "ring4.json", "-m", "pull", "--results", "blocked", cwd=copy, code=1)
    assert "cannot write" in flat(done.stderr)


# --- check and show ----------------------------------------------------------------------------------------------


def test_check(solved: Path, tmp_path: Path) -> None:
    text = flat(run("check", RECORD, BOUND, cwd=solved).stdout)
    assert "timesteps 2, replayed" in text
    assert "bound 2 follows from its certificate" in text
    assert run("check", "results", cwd=solved).stdout.count("ok ") == 2
    run("check", solved / RECORD, cwd=tmp_path)  # from anywhere: the instance is sought above the record
    assert run("check", "gone.json", cwd=solved, code=2).stderr
    assert run("check", "ring4.json", cwd=solved, code=2).stderr


def tamper(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def test_check_tells_tampered_records(copy: Path) -> None:
    """Exit 1 for a record that says what its solution does not do, 2 for one that cannot be checked, and the faults."""
    tamper(copy / RECORD, lambda data: data["objective"].update(value=1.0))
    done = run("check", "results", cwd=copy, code=1)
    assert "FAILED" in done.stdout
    assert "the record states the value 1.0, the replay gives 2.0" in flat(done.stdout)
    assert "ok " in done.stdout  # the bound's record is still checked
    tamper(copy / RECORD, lambda data: data["objective"].update(value=2.0))
    run("check", "results", cwd=copy)
    tamper(copy / RECORD, lambda data: data["solution"]["step"].__setitem__(0, data["solution"]["step"][0] % 2 + 1))
    assert "FAILED" in run("check", "results", cwd=copy, code=1).stdout
    (copy / RECORD).write_text("{")
    done = run("check", "results", cwd=copy, code=2)
    assert "pull.json: not valid JSON" in flat(done.stderr)


def test_check_tells_a_bound_without_certificate(copy: Path) -> None:
    tamper(copy / BOUND, lambda data: data.update(solution=None, bound=99.0))
    done = run("check", BOUND, cwd=copy, code=1)
    assert "follows from its certificate" not in done.stdout


def test_check_and_show_need_the_instance_as_it_was(copy: Path) -> None:
    write_ring(copy, chunk_bytes=5.0)
    for words in (("check", RECORD), ("show", RECORD), ("show", RECORD, "--csv")):
        assert "ring4.json has changed since the run" in flat(run(*words, cwd=copy, code=2).stderr)
    (copy / "ring4.json").unlink()
    assert "is not found" in flat(run("check", RECORD, cwd=copy, code=2).stderr)


def test_records_with_wrong_types_are_no_tracebacks(copy: Path) -> None:
    """Records somebody edited by hand, all in one go: whatever the verdict on each, it comes in words and the check
    goes on to the last; `show` likewise (`run` forbids a traceback)."""
    whole = json.loads((copy / RECORD).read_text())
    keys = ["objective", "verified", "seconds", "options", "instance_file", "instance_sha256", "family", "bound"]
    for key in keys:
        for i, wrong in enumerate((None, [1], 5)):
            (copy / "results" / f"a-{key}-{i}.json").write_text(json.dumps(whole | {key: wrong}))
    (copy / "results" / "zlast.json").write_text(json.dumps(whole | {"objective": whole["objective"] | {"value": 7.0}}))
    done = subprocess.run([SYNTH, "check", "results"], cwd=copy, text=True, capture_output=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr[-300:]
    assert done.returncode == 1
    assert "FAILED results/zlast.json" in done.stdout
    for key in ("objective", "seconds"):
        command = [SYNTH, "show", f"results/a-{key}-1.json"]
        done = subprocess.run(command, cwd=copy, text=True, capture_output=True, timeout=60)
        assert "Traceback" not in done.stderr, done.stderr[-300:]
        assert done.returncode == 2


def test_show(solved: Path) -> None:
    text = run("show", RECORD, cwd=solved).stdout
    assert "timesteps: 2, proven bound 2, gap 0" in text
    assert "verified: yes" in text
    assert "step   1 (8 of 8 links)" in text
    assert "inside [0]" in flat(run("show", BOUND, cwd=solved).stdout)
    assert "holds no solution" in flat(run("show", BOUND, "--csv", cwd=solved, code=2).stderr)


def test_csv_replays_in_ten_lines(solved: Path) -> None:
    """Anybody can check an allgather from the flat table: nothing of ours is used here."""
    rows = list(csv.DictReader(io.StringIO(run("show", RECORD, "--csv", cwd=solved).stdout)))
    assert list(rows[0]) == ["step", "src", "dst", "link", "origin", "chunk"]
    held = {v: {(v, 0)} for v in range(4)}
    for step in range(1, 3):
        now = [{key: int(value) for key, value in row.items()} for row in rows if int(row["step"]) == step]
        assert len({row["link"] for row in now}) == len(now)
        assert all((row["dst"] - row["src"]) % 4 in (1, 3) for row in now)
        assert all((row["origin"], row["chunk"]) in held[row["src"]] for row in now)
        for row in now:
            held[row["dst"]].add((row["origin"], row["chunk"]))
    assert all(chunks == {(v, 0) for v in range(4)} for chunks in held.values())
    assert len(rows) == 12


def test_csv_of_reductions_names_the_phase(tmp_path: Path) -> None:
    write_ring(tmp_path, collective="allreduce")
    run("solve", "ring4.json", "-m", "pull", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO(run("show", RECORD, "--csv", cwd=tmp_path).stdout)))
    phases = [row["collective phase"] for row in rows]
    assert phases.count("reduce_scatter") == phases.count("allgather") == 12


def test_plot(solved: Path, tmp_path: Path) -> None:
    run("show", solved / RECORD, "--plot", tmp_path / "p.png", cwd=tmp_path)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plot_refuses(solved: Path, tmp_path: Path) -> None:
    for target, words in (("p.doc", ".png, .svg or .pdf"), ("no/p.png", "cannot be written")):
        done = run("show", solved / RECORD, "--plot", target, cwd=tmp_path, code=2)
        assert words in flat(done.stderr)


def test_a_closed_pipe_is_no_error(solved: Path) -> None:
    """`synth show --csv | head -1`: the reader goes away, nobody complains."""
    for words in (("show", RECORD, "--csv"), ("families",)):
        process = subprocess.Popen([SYNTH, *words], cwd=solved, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert "Traceback" not in errors
        assert "Exception ignored" not in errors
        assert process.wait(60) == 0


# --- interruptions -----------------------------------------------------------------------------------------------

# torus 64x64, pull, one restart: about a minute of work, which is never finished here
LONG = {"network": {"kind": "torus", "rows": 64, "cols": 64}}


def children_of(parent: int) -> list[int]:
    """Ids of the live children of a process (Linux)."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def workers_of(parent: int) -> list[int]:
    """Ids of the processes of runs: children of the keepers, which are the children of the command."""
    return [worker for keeper in children_of(parent) for worker in children_of(keeper)]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_long(folder: Path, *words: object) -> tuple[subprocess.Popen[str], int]:
    """A solve that takes long, and the id of its worker once that one is at work."""
    command = [SYNTH, "solve", *map(str, words), "-m", "pull"]
    process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = workers_of(process.pid)
        if found:
            time.sleep(1.5)  # past its imports, into its work
            return process, workers_of(process.pid)[0]
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"no worker appeared: {process.communicate()}")


children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
needs_proc = pytest.mark.skipif(not children.exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(copy: Path, number: signal.Signals) -> None:
    """Records finished before stay, the interrupted one leaves nothing, its process is gone, the message says so."""
    write_ring(copy, "zlong", **LONG)
    process, worker = start_long(copy, "ring4.json", "zlong.json", "--resume", "--time-limit", "60s")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stdout + stderr
    assert not alive(worker)
    assert [str(path.relative_to(copy)) for path in sorted((copy / "results").rglob("*")) if path.is_file()] == [
        str(BOUND), str(RECORD),
    ]  # fmt: skip
    run("check", "results", cwd=copy)


@needs_proc
def test_killed_worker(tmp_path: Path) -> None:
    """kill -9 of one run: its record says `killed`, the next file is solved, the exit code is 1."""
    write_ring(tmp_path, "along", **LONG)
    write_ring(tmp_path)
    process, worker = start_long(tmp_path, "along.json", "ring4.json", "--json")
    os.kill(worker, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in stderr
    first, second = map(json.loads, stdout.splitlines())
    assert (first["termination"], first["objective"]["value"]) == ("killed", None)
    assert "signal 9" in first["message"]
    assert (second["instance"], second["objective"]["value"]) == ("ring4", 2.0)
    stored = tmp_path / "results/xtree/along/pull.json"
    assert json.loads(stored.read_text()) == first
    assert sorted(path.name for path in stored.parent.iterdir()) == ["pull.json"]
    assert "killed, holds no solution" in flat(run("check", stored, cwd=tmp_path).stdout)
