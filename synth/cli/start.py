"""Where the command starts: what its processes share is set before anything large is imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def run() -> None:
    """Entry point of ``synth``."""
    keep_bytecode()
    from synth.cli.main import run as command

    command()


def keep_bytecode() -> None:
    """Keep compiled modules in synth's own cache where ``PYTHONDONTWRITEBYTECODE`` keeps them out of source folders.

    With that variable, as container images have it, every process would compile all that it imports, more than 2 s
    each where pandas was installed uncompiled. Nothing is written beside a source. A ``PYTHONPYCACHEPREFIX`` or the
    option ``-B`` is followed as it is; so is the variable where the cache cannot be written. The processes that the
    command starts inherit the choice.
    """
    asked = os.environ.get("PYTHONDONTWRITEBYTECODE")
    if not asked or not sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "synth", "bytecode")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home
        return
    if not os.access(folder, os.W_OK):
        return
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    sys.dont_write_bytecode = False
    del os.environ["PYTHONDONTWRITEBYTECODE"]
