"""Both checkers of one record: ``results/published/verify.py`` and ``synth check``."""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import synth
from synth.errors import SynthError
from synth.records.record import Record

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


def whole(made: Record) -> dict[str, Any]:
    """A record of kind bound with its arrays and its instance in its text."""
    record: dict[str, Any] = json.loads(
        json.dumps({**made.data, "solution": made.certificate}, default=lambda array: array.tolist())
    )
    return record | {"solution_file": None, "instance_text": made.find_instance().to_json(), "progress": None}


def greatest(record: dict[str, Any]) -> float:
    """The greatest bound that its certificate proves to the second checker."""
    instance, held = verify.read_instance(record["instance_text"], str(ROOT)), verify.Held(record["solution"])

    def proves(bits: int) -> bool:
        try:
            instance.certify(held, Fraction(as_double(bits)))
        except verify.Fault:
            return False
        return True

    stated, low = (struct.unpack("<Q", struct.pack("<d", record["bound"] * by))[0] for by in (1.0, 0.05))
    return as_double(last_that(proves, stated if proves(stated) else low))


def last_that(holds: Callable[[int], bool], first: int) -> int:
    """The last number from ``first`` on that something holds for, which holds for no later one: one near to ``first``
    is found by few questions."""
    assert holds(first)
    low, step = first, 1
    while holds(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def as_double(bits: int) -> float:
    """The double of these bits: doubles from 0 on are in the order of their bits."""
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
