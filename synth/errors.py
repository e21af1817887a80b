"""The errors a user can cause, each of which ends in one clear message (and exit code 2) instead of a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where it stands, what stands there, and what would be right."""

    path: str
    message: str
    value: Any = None
    has_value: bool = False

    def __str__(self) -> str:
        where = self.path or "(top level)"
        shown = f" = {_short(self.value)}" if self.has_value else ""
        return f"{where}{shown}: {self.message}"


def _short(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


class SynthError(Exception):
    """Base of all errors raised on purpose by the toolkit."""


class InputError(SynthError):
    """The input is wrong. ``faults`` lists everything found at once, one line each in ``str(error)``; ``hint`` says
    where the right input is described, which the command prints last."""

    hint: str | None = None

    def __init__(self, faults: Sequence[Fault] | str, source: str | None = None) -> None:
        self.faults: tuple[Fault, ...] = (Fault("", faults),) if isinstance(faults, str) else tuple(faults)
        self.source = source
        super().__init__(str(self))

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        return "\n".join(prefix + (str(f) if f.path else f.message) for f in self.faults)


class UnsupportedError(SynthError):
    """The method does not apply to this instance (for example no translation symmetry). The message says why."""


class SolverMissingError(InputError):
    """The solver asked for is unknown or not installed. The message says how to install it."""


class SizeLimitError(SynthError):
    """The model is larger than the solver's licence (or the method's documented size) allows."""
