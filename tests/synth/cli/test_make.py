"""`synth families`, `solvers`, `instances` and `make` as a person or a script meets them: real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import flat, run, write_ring

from synth.cli import main
from synth.family import family_names

SHIPPED = Path(__file__).resolve().parents[3] / "instances"


def test_families(tmp_path: Path) -> None:
    """A row a family: how many methods of each kind, how many instances are shipped; the rest is a word away."""
    text = run("families", cwd=tmp_path).stdout
    for name, kinds in (("bine", (2, 13, 1)), ("xtree", (2, 13, 2))):
        shipped = len(run("instances", name, "--folder", SHIPPED, cwd=tmp_path).stdout.splitlines()) - 4
        [row] = [line for line in text.splitlines() if line.startswith(f"│ {name} ")]
        assert [cell.strip() for cell in row.strip("│").split("│")][2:] == [*map(str, kinds), str(shipped)]
    assert len(text.splitlines()) == 5 + len(family_names())
    text = flat(run("families", "xtree", cwd=tmp_path).stdout)
    for word in ("xtree", "bound", "mirror_xtree", "pull", "ilp", "│ restarts │ whole number >= 1 │ 10 │", "timesteps"):
        assert word in text


def test_solvers(tmp_path: Path) -> None:
    text = flat(run("solvers", cwd=tmp_path).stdout)
    for word in ("highs", "cpsat", "scip", "gurobi", "installed", "licence"):
        assert word in text


def test_instances(solved: Path, tmp_path: Path) -> None:
    assert "equimesh-2x3-c4" in run("instances", "xtree", "--folder", SHIPPED, cwd=tmp_path).stdout
    assert "no such folder" in flat(run("instances", cwd=tmp_path, code=2).stderr)
    assert "unknown family 'tree'" in flat(run("instances", "tree", "--folder", SHIPPED, cwd=tmp_path, code=2).stderr)


@pytest.mark.parametrize("columns", ["20", "80", "400"])
def test_a_table_in_a_pipe_is_as_wide_as_it_needs(tmp_path: Path, columns: str) -> None:
    """A row is a line with all its words, whatever an environment exports as COLUMNS."""
    source = "words on where it comes from " * 20 + "end"
    write_ring(tmp_path, source=source)
    done = run("instances", "--folder", ".", cwd=tmp_path, COLUMNS=columns)
    [row] = [line for line in done.stdout.splitlines() if "ring4" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["ring4.json", "xtree", "ring4", source]
    assert {len(line) for line in done.stdout.splitlines()} == {len(row)}


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


def test_a_column_in_the_wrong_unit_is_one_fault(tmp_path: Path) -> None:
    """A table of links, a demand matrix, a trace and an instance file: how many rows, and where the first ones are. Few
    faults, and other ones, keep their lines."""
    rows = [f"{i},{(i + 1) % 500},{'25GB' if i else 'fast'}" for i in range(500)]
    (tmp_path / "l.csv").write_text("\n".join(["src,dst,bandwidth", *rows, "x,1,1e9"]))
    done = run("make", "xtree", "links=l.csv", cwd=tmp_path, code=2)
    places = "500 times; then links (l.csv), line 3, bandwidth; links (l.csv), line 4, bandwidth; …"
    node, column, *_ = done.stderr.splitlines()
    wrong = "synth: synth make xtree: links (l.csv), line 2, bandwidth = 'fast': must be a rate such as 25GB/s, "
    wrong += "200Gbit/s or 25e9 (bytes/s) "
    assert column == wrong + f"({places})"
    assert node == "synth: synth make xtree: links (l.csv), line 502, src = 'x': nodes are numbers or names, not both"
    (tmp_path / "d.csv").write_text("\n".join(",".join(["1XB"] * 50) for _ in range(50)))
    (tmp_path / "t.csv").write_text("\n".join(f"job{i},4,rack{i}" for i in range(60)))
    links = [{"src": i % 2, "dst": 1 - i % 2, "bandwidth": -i} for i in range(60)]
    data = {"format": "synth-instance/1", "family": "xtree", "name": "n", "source": "test", "chunks": 1}
    (tmp_path / "n.json").write_text(json.dumps(data | {"network": {"kind": "links", "nodes": 2, "links": links}}))
    for words, first in (
        (
            ("make", "harvest", "steps=d.csv"),
            "row 0, column 0 = '1XB': must be a finite number of bytes >= 0, such as 4096 or 64KB (2,500 times",
        ),
        (("make", "bine", "jobs=t.csv"), "(60 times; then jobs (t.csv), line 2; jobs (t.csv), line 3; …)"),
        (("solve", "n.json"), "links[0].bandwidth = 0: must be > 0 (60 times; then network"),
    ):
        text = run(*words, cwd=tmp_path, code=2).stderr
        assert first in text
        assert len(text.splitlines()) < 8


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
    run("make", "xtree", "links=l.csv", "bandwidth=3GB/s", "latency=0", "chunks=2", "name=n", cwd=tmp_path)
    record = json.loads(run("solve", "n.json", "-m", "pull", "--json", cwd=tmp_path).stdout)
    assert record["objective"]["value"] == 4.0  # one-way ring of 3: 2 nodes' 2 chunks over one link


def test_make_names_every_fault(tmp_path: Path) -> None:
    done = run("make", "xtree", "network=mesh", "rows=x", "chunks=0", "colour=red", cwd=tmp_path, code=2)
    *faults, hint = done.stderr.splitlines()
    assert sorted(line.split()[4].rstrip(":") for line in faults) == ["chunks", "colour", "cols", "rows"]
    assert hint == "what each key means: synth make xtree --help"
    mistyped = run("make", "xtree", "network=mesh", "rows=3", "cols=3", "chunk=2", cwd=tmp_path, code=2)
    assert "did you mean chunks?" in mistyped.stderr
    for words in (("make", "xtree", "rows"), ("make", "tree")):
        assert run(*words, cwd=tmp_path, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_help_lists_a_familys_keys(tmp_path: Path) -> None:
    """Every key with what it takes, its default and its unit, and examples that work."""
    text = flat(run("make", "xtree", "--help", cwd=tmp_path).stdout)
    for words in ("| reduce_scatter | allreduce", "chunks whole number >= 1: equal chunks", "bytes/s (default"):
        assert words in text
    example = text.partition("Examples: synth make xtree ")[2].partition(" synth make")[0].replace("\\ ", "")
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
        ("synth solve m", ["mine.json"]),
        ("synth solve own/", ["own/a.json"]),
        ("synth solve mine.json ./", ["./mine.json"]),
        ("synth solve instances/x", ["instances/xtree/equimesh-2x3-c4.json", "instances/xtree/ring-8-c1.json"]),
        (
            "synth solve inst",
            ["instances/mlfm/a.json", "instances/xtree/equimesh-2x3-c4.json", "instances/xtree/ring-8-c1.json"],
        ),
        ("synth solve notes", []),  # likewise
    ],
)
def test_completion(
    words: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = ("xtree/ring-8-c1.json", "xtree/equimesh-2x3-c4.json", "mlfm/a.json", "studies/xtree.toml")
    for name in ("mine.json", "notes.txt", "own/a.json", *(f"instances/{one}" for one in shipped)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "_SYNTH_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main.app(prog_name="synth")
    assert capsys.readouterr().out.split() == expected
