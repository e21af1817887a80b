"""Both checkers of one record: ``results/published/verify.py`` and ``synth check``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import synth
from synth.errors import SynthError

ROOT = Path(__file__).resolve().parents[1]
VERIFY = ROOT / "results" / "published" / "verify.py"


def load() -> ModuleType:
    """Import the second checker from its file, as nobody else's module."""
    specification = importlib.util.spec_from_file_location("second_checker", VERIFY)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["second_checker"] = module
    specification.loader.exec_module(module)
    return module


verify = load()


def opinions(text: str, folder: Path) -> tuple[str, str, str, str]:
    """Return what the second checker and ``synth check`` say of a record, each with its reason."""
    file = folder / "forged.json"
    file.write_text(text)
    _, ours, reason, _ = verify.Checker().check("forged", str(ROOT), text)
    try:
        verdict = synth.check(file)
        theirs, why = ("accept" if verdict.ok else "refuse"), "; ".join(verdict.faults)
    except SynthError as wrong:
        theirs, why = "refuse", str(wrong)
    return ours, theirs, reason, why
