"""The errors a user can cause, each of which ends in one clear message (and exit code 2) instead of a traceback."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

FEW = 5  # faults of one kind that have a line each; more of them share one


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where it stands, what stands there, and what would be right."""

    path: str
    message: str
    value: Any = None
    has_value: bool = False

    def __str__(self) -> str:
        where = self.path or "(top level)"
        shown = f" = {abridged(repr(self.value))}" if self.has_value else ""
        return f"{where}{shown}: {self.message}"


def abridged(text: str, limit: int = 60) -> str:
    """The text, cut to ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_of(name: object, choices: Iterable[str], otherwise: str = "there is none") -> str:
    """What stands behind "unknown": the choice a misspelt name is nearest to, and all of them."""
    known = list(choices)
    near = get_close_matches(str(name).lower(), known, 1)
    return (f"did you mean {near[0]}? " if near else "") + (f"one of {', '.join(known)}" if known else otherwise)


class SynthError(Exception):
    """Base of all errors raised on purpose by the toolkit."""


class InputError(SynthError):
    """The input is wrong. ``faults`` lists everything found at once, one line each in ``str(error)``; many rows of a
    file with the same fault share one. ``hint`` says where the right input is described, which the command prints last.
    """

    hint: str | None = None

    def __init__(self, faults: Sequence[Fault] | str, source: str | None = None) -> None:
        self.faults: tuple[Fault, ...] = (Fault("", faults),) if isinstance(faults, str) else tuple(faults)
        self.source = source
        super().__init__(str(self))

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        return "\n".join(prefix + line for line in self._lines())

    def _lines(self) -> Iterator[str]:
        """Faults are of one kind where their places and words differ in numbers and quoted texts only."""
        kinds: dict[tuple[str, ...], list[Fault]] = defaultdict(list)
        for fault in self.faults:
            kinds[tuple(re.sub(r"'[^']*'|\d+", "0", text) for text in (fault.path, fault.message))].append(fault)
        many = {id(kind[0]): kind for (path, _), kind in kinds.items() if path and len(kind) > FEW}
        alike = {id(fault) for kind in many.values() for fault in kind[1:]}
        for fault in self.faults:
            if id(fault) in many:
                kind = many[id(fault)]
                yield f"{fault} ({len(kind):,} times; then {'; '.join(other.path for other in kind[1:3])}; …)"
            elif id(fault) not in alike:
                yield str(fault) if fault.path else fault.message


class LimitError(InputError):
    """A schedule is more than an executor takes; one that is cut into fewer pieces may not be."""


class UnsupportedError(SynthError):
    """The method does not apply to this instance (for example no translation symmetry). The message says why."""


class SolverMissingError(InputError):
    """The solver asked for is unknown or not installed. The message says how to install it."""


class SizeLimitError(SynthError):
    """The model is larger than the solver's licence (or the method's documented size) allows."""
