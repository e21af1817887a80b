"""A folder in which the command has been at work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import run, write_ring


@pytest.fixture(scope="session")
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
