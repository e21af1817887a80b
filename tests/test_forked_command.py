"""A command that is forked says and does what one in a new interpreter does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked_command
import pytest
from command import SYNTH, write_ring


@pytest.mark.parametrize(
    ("words", "environment", "code"),
    [
        (["families"], {"COLUMNS": "60"}, 0),
        (["check", "results"], {}, 0),
        (["solve", "absent.json"], {}, 2),
        (["solve", "ring4.json", "-m", "ilp", "-O", "horizon=1", "--json", "--resume"], {}, 3),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_as_in_a_new_interpreter(words: list[str], environment: dict[str, str], code: int, solved_below: Path) -> None:
    where = {**os.environ, **environment}
    command = [str(SYNTH), *words]
    cold = subprocess.run(command, cwd=solved_below, env=where, capture_output=True, text=True)
    forked = forked_command.run(command, solved_below, where, 60)
    assert (forked.returncode, forked.stdout, forked.stderr) == (cold.returncode, cold.stdout, cold.stderr)
    assert cold.returncode == code


@pytest.fixture(scope="module")
def solved_below(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ring and its record of a question that has no answer."""
    folder = tmp_path_factory.mktemp("forked")
    write_ring(folder)
    words = ["solve", "ring4.json", "-m", "ilp", "-O", "horizon=1"]
    assert forked_command.run([str(SYNTH), *words], folder, os.environ, 60).returncode == 3
    return folder


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """And the next one is served."""
    os.mkfifo(tmp_path / "pipe.csv")  # nobody writes there
    command = [str(SYNTH), "import", "pipe.csv"]
    with pytest.raises(subprocess.TimeoutExpired):
        forked_command.run(command, tmp_path, os.environ, 1.0)
    assert forked_command.run([str(SYNTH), "--version"], tmp_path, os.environ, 60).stdout.startswith("synth ")


def test_only_the_interpreters_own_variables_need_a_new_one() -> None:
    assert forked_command.can_fork({**os.environ, "COLUMNS": "20", "PYTHONPATH": "elsewhere"})
    assert not forked_command.can_fork({**os.environ, "NUMBA_DISABLE_JIT": "1"})


def test_the_process_that_forks_ends_with_who_started_it() -> None:
    words = [sys.executable, "-c", "import forked_command as f; f.listen_for_all(); print(f.os.environ[f.LISTENER])"]
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    folder = Path(subprocess.run(words, env=where, capture_output=True, text=True, check=True).stdout.strip())
    assert folder.name.startswith("synth-tests-")
    assert not folder.exists()
