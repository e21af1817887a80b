"""Compiled modules are kept in a cache of synth's own where ``PYTHONDONTWRITEBYTECODE`` is set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import synth

CODE = "from synth.cli import start; start.keep_bytecode(); import synth.text.amounts, subprocess, sys; "
ASKED = {"PYTHONDONTWRITEBYTECODE": "1"}


def started(sources: Path, code: str, *options: str, **environment: str) -> str:
    """What a new interpreter prints that finds synth in ``sources``; this process's choice is not handed down."""
    where = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    where |= {"PYTHONPATH": str(sources), **environment}
    command = [sys.executable, *options, "-c", CODE + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=sources, env=where)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the package without its bytecode."""
    package = Path(synth.__file__).parent
    shutil.copytree(package, tmp_path / "sources" / "synth", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "sources"


def compiled(folder: Path) -> list[str]:
    """Names of the modules of which bytecode lies below a folder."""
    return [path.name.partition(".")[0] for path in folder.rglob("*.pyc")]


def test_bytecode_goes_to_the_cache_and_none_beside_the_sources(sources: Path, tmp_path: Path) -> None:
    started(sources, "", **ASKED, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "amounts" in compiled(tmp_path / "cache" / "synth" / "bytecode")
    assert compiled(sources) == []


@pytest.mark.long
def test_processes_that_the_command_starts_keep_it_there_too(sources: Path, tmp_path: Path) -> None:
    code = "subprocess.run([sys.executable, '-c', 'import synth.text.quantities'], check=True)"
    started(sources, code, **ASKED, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "quantities" in compiled(tmp_path / "cache" / "synth" / "bytecode")
    assert compiled(sources) == []


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("options", "environment"),
    [
        ((), ASKED | {"PYTHONPYCACHEPREFIX": "chosen"}),  # a folder of the user's
        (("-B",), {}),
        ((), {}),  # Python as it is: beside the sources
    ],
)
def test_what_the_user_says_is_followed(
    sources: Path, tmp_path: Path, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    told = {key: str(tmp_path / value) if value == "chosen" else value for key, value in environment.items()}
    started(sources, "", *options, **told, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert compiled(tmp_path / "cache") == compiled(tmp_path / "chosen") == []
    assert ("amounts" in compiled(sources)) == (not options and not environment)


def test_a_cache_that_cannot_be_written_changes_nothing(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    told = ASKED | {"XDG_CACHE_HOME": str(tmp_path / "file")}
    printed = started(sources, "print(sys.dont_write_bytecode, sys.pycache_prefix)", **told)
    assert printed.split() == ["True", "None"]
    assert compiled(sources) == []
