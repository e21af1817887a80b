"""What commands print for a person to use: commands that can be pasted, choices that were meant, reasons."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from command import run, write_ring
from published import PUBLISHED
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError, one_of
from synth.execution.pool import run_all
from synth.family import get_family
from synth.findings.command_line import commands
from synth.making import make
from synth.records import record as records

ODD = 'it\'s a "new" $HOME; folder'


def printed(text: str) -> list[list[str]]:
    """The words of every `synth …` command in the text, read as a shell reads them."""
    found = []
    for start in re.finditer(r"\bsynth (?=\w)", text):
        rest = text[start.end() :].splitlines()[0]
        lexer = shlex.shlex(
            re.split(r"`|; (?:all records|drawn)|, or ", rest)[0], posix=True, punctuation_chars=";&|<>"
        )
        lexer.whitespace_split = True
        found.append(list(lexer))
    return found


def test_printed_commands_hold_odd_names(tmp_path: Path) -> None:
    """Folders with spaces, quotes, a variable and a semicolon: each printed command has the path as one word, and it
    runs when pasted."""
    folder = tmp_path / ODD
    folder.mkdir()
    ring = write_ring(folder)
    solved = run("solve", ring, "-m", "pull", "--results", folder / "r", cwd=tmp_path)
    [show] = printed(solved.stderr)
    assert show == ["show", str(folder / "r/xtree/ring4/pull.json")]
    [table] = printed(run(*show, cwd=tmp_path).stdout)
    assert table == [*show, "--csv"]
    assert run(*table, cwd=tmp_path).stdout.startswith("step,")
    batch = run("batch", "submit", ring, "-m", "pull", "--folder", folder / "b", "--time-limit", "5s", cwd=tmp_path)
    assert not printed(batch.stdout)
    (folder / "b" / "records/xtree/ring4/pull.json").unlink()
    assert ["batch", "resubmit", str(folder / "b")] in printed(
        run("batch", "status", folder / "b", cwd=tmp_path).stdout
    )


def test_sources_and_findings_hold_odd_names(tmp_path: Path) -> None:
    links = tmp_path / "my links.csv"
    links.write_text("src,dst,bandwidth,latency\n0,1,1GB/s,1us\n1,0,1GB/s,1us\n")
    made = make(get_family("xtree"), {"links": str(links), "chunks": "1", "name": "mine"})
    assert printed(made.source) == [["make", "xtree", "links=my links.csv", "chunks=1", "name=mine"]]
    record = synth.solve(synth.make("xtree", network="ring", nodes=4, chunks=1), "bound")
    odd = records.Record({**record.data, "instance_file": f"{ODD}.json"}, record.packed, tmp_path / "x/r.json")
    assert printed("\n".join(commands([odd], tmp_path)))[0][1] == f"{ODD}.json"
    inside = tmp_path / "page" / ODD / "xtree/ring/bound.json"
    held = records.Record({**record.data, "instance_text": record.find_instance().to_json()}, record.packed, inside)
    [words] = printed("\n".join(commands([held], tmp_path)))
    assert words == ["solve", str(inside), "-m", "bound", "--results", f"results/page/{ODD}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("make fabric machine=dgx-a10 collective=allgather bytes=1MiB", "did you mean dgx-a100? one of amd16"),
        ("make fabric machine=dgx-a100 collective=allgater bytes=1MiB", "reshard; did you mean allgather?"),
        ("make fabrik machine=dgx-a100", "unknown family 'fabrik'; did you mean fabric?"),
        ("show .", "synth: .: is a folder: name a record in it"),
        ("show ring4.json", "synth: ring4.json: is an instance, not a record: synth solve makes records of it"),
        ("run moves.csv", "synth: moves.csv: no such file"),
        ("study ring4.json", "synth: ring4.json: is no study: studies are TOML files; synth solve takes instances"),
        ("reproduce bien", "unknown page 'bien'; did you mean bine? one of all, findings, bine"),
        ("reproduce cluster", "did you mean clusters?"),
    ],
)
def test_slips_are_named(words: str, said: str, tmp_path: Path) -> None:
    """A misspelt name, a folder or an instance where a record goes, a file that is not there."""
    write_ring(tmp_path)
    done = run(*words.split(), cwd=tmp_path, code=2)
    assert said in done.stderr
    assert "--help" not in done.stderr or "make fabric" in words


def test_no_command_is_put_together_without_quoting() -> None:
    """No text of ours has a path or name of the user's behind `synth …` that is not quoted."""
    root = Path(synth.__file__).parent
    plain = r"(name|family|example|NAME|finding|page)\b"
    plain = r"(?!command|shlex|(?:name|family|family\.name|example|NAME|finding\.page or family\.name|page)\})"
    words = re.compile(r"synth (?:solve|check|show|pack|export|import|study|batch|tour)\b[^\"\n'`{]*\{" + plain)
    found = [f"{file.name}: {hit[0]}" for file in root.rglob("*.py") for hit in words.finditer(file.read_text())]
    assert not found


def refused(*words: str) -> str:
    """What the command says of these words, which are wrong."""
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["solve", "RING", "-m", "ilp", "-O", "horizn=5"], "horizon"),
        (["solve", "RING", "-m", "pul"], "pull"),
        (["solve", "RING", "-m", "ilp", "--solver", "hihgs"], "highs"),
        (["make", "xtre", "network=ring"], "xtree"),
        (["make", "xtree", "network=ring", "node=4"], "nodes"),
        (["families", "fabrik"], "fabric"),
        (["study", "mlmf"], "mlfm"),
        (["reproduce", "bin"], "bine"),
    ],
)
def test_a_misspelt_name_meets_the_one_that_was_meant(tmp_path: Path, words: list[str], meant: str) -> None:
    ring = str(write_ring(tmp_path))
    assert f"did you mean {meant}?" in refused(*[ring if word == "RING" else word for word in words])


def test_a_page_that_is_not_made_in_parts_says_so() -> None:
    assert refused("reproduce", "mlfm", "--again", "--only", "ring").count("page mlfm is not made in parts") == 2


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("methds = ['pull']", "methods"), ("methods = ['pulll']", "pull"), ("solvers = ['cpsatt']", "cpsat"),
        ("options = {horizn = 3}", "horizon"), ("time_limit = ['1s']", "time_limits"),
    ],
)  # fmt: skip
def test_a_misspelt_word_of_a_study(tmp_path: Path, text: str, meant: str) -> None:
    write_ring(tmp_path)
    (tmp_path / "s.toml").write_text(f"name = 's'\ninstances = ['ring4.json']\n[[run]]\n{text}\n")
    assert f"did you mean {meant}?" in refused("study", str(tmp_path / "s.toml"))
    (tmp_path / "s.toml").write_text("name = 's'\ninstance = ['ring4.json']\n")
    assert "did you mean instances?" in refused("study", str(tmp_path / "s.toml"))


def test_one_of_names_all_and_guesses_only_what_is_near() -> None:
    assert one_of("horizn", ["start", "horizon"]) == "did you mean horizon? one of start, horizon"
    assert one_of("zzz", ["start", "horizon"]) == "one of start, horizon"
    assert one_of("x", [], "it takes none") == "it takes none"


def test_unsupported_says_why_in_the_table(tmp_path: Path) -> None:
    made = tmp_path / "a.json"
    made.write_text(synth.make("fabric", machine="dgx1", collective="broadcast", bytes=1024).to_json())
    done = run("solve", made, "-m", "bruck", "-m", "direct", "-m", "bound", "--all", cwd=tmp_path, COLUMNS="300")
    record = json.loads(next(tmp_path.rglob("bruck.json")).read_text())
    assert record["termination"] == "unsupported"
    assert f"unsupported: {record['message']}" in done.stdout


def test_elsewhere_than_on_linux_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ring = write_ring(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InputError, match=r"^runs need Linux, and this is darwin") as caught:
        list(run_all([]))
    assert len(str(caught.value).splitlines()) == 1
    done = CliRunner().invoke(app, ["solve", str(ring), "--results", str(tmp_path / "r")])
    assert isinstance(done.exception, InputError)


def test_a_record_names_no_folder_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance outside the working folder is named by its file, and its text is in the record: the check needs
    nothing else."""
    ring = write_ring(tmp_path / "a" if (tmp_path / "a").mkdir() is None else tmp_path)
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    record = synth.solve(synth.read(ring), "pull", results="r")
    assert record["instance_file"] == "ring4.json"
    assert str(tmp_path) not in (tmp_path / "b/r/xtree/ring4/pull.json").read_text()
    ring.unlink()
    assert synth.check(records.read("r/xtree/ring4/pull.json")).ok
    monkeypatch.chdir(tmp_path)
    write_ring(tmp_path / "a")
    inside = synth.solve(synth.read("a/ring4.json"), "pull")
    assert (inside["instance_file"], inside.data.get("instance_text")) == ("a/ring4.json", None)


@pytest.mark.long
def test_no_published_file_holds_a_path_of_a_machine() -> None:
    """No key of a record, cell of a table or line of a page is an absolute path."""
    odd = re.compile(r"""(?<![\w.:/<)\]}*~+-])/(?:home|tmp|work|root|var|opt|mnt|Users|data|scratch)/\w""")
    texts = [p for p in PUBLISHED.rglob("*") if p.suffix in (".jsonl", ".json", ".csv", ".md", ".sh", ".toml", ".svg")]
    assert len(texts) > 100
    assert [str(path) for path in texts if odd.search(path.read_text())] == []
    for path in PUBLISHED.rglob("records.jsonl"):
        for line in path.read_text().splitlines():
            name: Any = json.loads(line)["instance_file"]
            assert name is None or not (Path(name).is_absolute() or ".." in Path(name).parts), (path, name)
