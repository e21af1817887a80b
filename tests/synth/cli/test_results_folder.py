"""A folder for results that cannot be one is refused before anything runs; what was interrupted goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from synth.cli import study
from synth.cli.common import demand_folder
from synth.cli.main import app
from synth.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
TOUR = ROOT / "instances" / "tour" / "tour.toml"
RING = ROOT / "instances" / "xtree" / "ring-8-c1.json"


@pytest.mark.parametrize("below", ["", "below/it"])
@pytest.mark.parametrize(
    "words",
    [
        ("solve", RING, "-m", "bound", "--results"), ("study", TOUR, "--results"), ("tour", "--results"),
        ("reproduce", "findings", "--results"), ("reproduce", "mlfm", "--quick", "--results"),
        ("batch", "submit", RING, "-m", "bound", "--folder"),
    ],
)  # fmt: skip
def test_a_file_is_no_folder_for_results(words: tuple[Any, ...], below: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    done = CliRunner().invoke(app, [*map(str, words), str(file / below)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith(f"{words[-1]} = ")
    assert str(done.exception).endswith(f"{file} is no folder")
    assert done.output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "mine"


def test_folders_that_are_there_or_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), Path("a"), Path("a/b"), tmp_path, tmp_path / "c" / "d", Path("../x")):
        demand_folder("--results", folder)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["tempfile.TemporaryFile", "pathlib.Path.mkdir"])
def test_a_folder_that_takes_no_file_is_refused(
    fault: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the system says when a file is to be written there (root may write anywhere, so it is made to)."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(call, refuse)
    words = "no permission to write" if fault == errno.EACCES else os.strerror(fault)
    with pytest.raises(InputError, match=words):
        demand_folder("--results", tmp_path / "c")


@pytest.mark.parametrize(
    "words",
    [
        ("solve", RING, "-m", "bound", "--results"), ("solve", RING, "-m", "bound", "--resume", "--results"),
        ("study", TOUR, "--results"), ("tour", "--results"), ("reproduce", "mlfm", "--quick", "--results"),
        ("reproduce", "findings", "--results"), ("batch", "submit", RING, "-m", "bound", "--folder"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["/proc/none/of/them", "n" * 300, "ok/" + "n" * 300])
def test_commands_refuse_folders_that_cannot_be_made(
    words: tuple[Any, ...], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything runs, in one line, with nothing left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("synth.execution.pool.run_all", None)
    done = CliRunner().invoke(app, [*map(str, words), folder])
    assert isinstance(done.exception, InputError), done.output
    assert len(str(done.exception).splitlines()) == 1
    assert str(done.exception).startswith(f"{words[-1]} = ")
    assert not list(tmp_path.iterdir())


def test_a_file_where_the_record_is_to_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.execution.pool.run_all", None)
    (tmp_path / "xtree").mkdir()
    (tmp_path / "xtree" / "ring-8-c1").write_text("mine")
    done = CliRunner().invoke(app, ["solve", str(RING), "-m", "bound", "--results", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).endswith("ring-8-c1 is no folder")


@pytest.mark.parametrize("words", [[], ["--resume"]])
def test_the_tour_goes_on_where_it_was_interrupted(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of an interruption names ``--resume``."""
    asked: list[bool] = []

    def run_study(_study: Any, _jobs: int | None, resume: bool = False, **_: Any) -> None:
        asked.append(resume)
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_study", run_study)
    CliRunner().invoke(app, ["tour", "--results", str(tmp_path / "tour"), *words])
    assert asked == [bool(words)]


def test_a_file_to_import_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["import", str(tmp_path / "none.xml"), "--machine", "m.json"])
    assert str(done.exception) == f"{tmp_path / 'none.xml'}: no such file"
