"""What is printed is plain wherever nobody looks at it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from command import SYNTH

pty = pytest.importorskip("pty")


@pytest.mark.parametrize("launched", [False, True])
def test_tables_under_mpirun_have_no_escapes(launched: bool) -> None:
    """Open MPI's mpirun gives its processes terminals that nobody sees; on a real one a table's head is bold."""
    ours, theirs = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"TERM": "xterm-256color", "COLUMNS": "80"} | ({"OMPI_COMM_WORLD_RANK": "0"} if launched else {})
    with subprocess.Popen([SYNTH, "families"], stdout=theirs, stderr=theirs, env=env) as done:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # the other end is closed
            assert sys.platform != "win32"
    os.close(ours)
    assert done.returncode == 0
    assert "fabric" in text.decode()
    assert (b"\x1b" in text) != launched
