"""The errors a user can cause, each of which ends in one clear message (and exit code 2) instead of a traceback."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from synth.text.visible import visible

FEW = 5  # faults of one kind that have a line each; more of them share one
LONGEST_PLACE, LONGEST_MESSAGE, LONGEST_SOURCE = 300, 3000, 4200  # characters; a path of the system has at most 4,096


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where it stands, what stands there, and what would be right. ``more``: how many
    further faults of its kind there are that are not listed."""

    path: str
    message: str
    value: Any = None
    has_value: bool = False
    more: int = 0

    def __str__(self) -> str:
        """Return one line, whatever the file held that the fault is about."""
        where = visible(abridged(self.path, LONGEST_PLACE)) or "(top level)"
        shown = f" = {visible(abridged(_in_python(self.value)))}" if self.has_value else ""
        return f"{where}{shown}: {self.words}"

    @property
    def words(self) -> str:
        """The message as it is shown."""
        return visible(abridged(self.message, LONGEST_MESSAGE))


def _in_python(value: object) -> str:
    """As Python writes it; of what only Python can give, such as a graph or a frame, the type."""
    text = repr(value)
    return type(value).__name__ if " object at 0x" in text or "\n" in text else text


def abridged(text: str, limit: int = 60) -> str:
    """The text, cut to ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(maxsize=2**14)
def _without_numbers(text: str) -> str:
    return re.sub(r"'[^']*'|\d+", "0", text)


def first_of_kind(places: Sequence[int], fault_at: Callable[[int], Fault], listed: int = 3) -> Iterator[Fault]:
    """Faults of one kind at all these places: the first ``listed``, the last of which says how many more there are."""
    for n, place in enumerate(places[:listed], 1):
        fault = fault_at(int(place))
        yield replace(fault, more=len(places) - n) if n == listed else fault


def kind_of(fault: Fault) -> tuple[str, str]:
    """What faults of one kind have in common: their places and words differ in numbers and quoted texts only."""
    return _without_numbers(fault.path), _without_numbers(fault.message)


class FaultsByKind:
    """Faults as they are found: of every kind the first ``listed``, and how many more there are. What is kept depends
    on the number of kinds, not of faults."""

    def __init__(self, listed: int = 3) -> None:
        self._listed, self._kinds = listed, defaultdict[tuple[str, str], list[int]](list)
        self._kept: list[Fault] = []
        self._more: dict[int, int] = defaultdict(int)
        self.total = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, fault: Fault) -> None:
        """Count one more, and keep it if it is among the first of its kind."""
        self.total += 1 + fault.more
        places = self._kinds[kind_of(fault)]
        if len(places) < self._listed:
            places.append(len(self._kept))
            self._kept.append(fault)
        else:
            self._more[places[-1]] += 1 + fault.more

    def kept(self) -> list[Fault]:
        """What is kept, in the order in which it was found."""
        return [replace(fault, more=fault.more + self._more.get(k, 0)) for k, fault in enumerate(self._kept)]


def one_of(name: object, choices: Iterable[str], otherwise: str = "there is none") -> str:
    """What stands behind "unknown": the choice a misspelt name is nearest to, and all of them."""
    known = list(choices)
    return did_you_mean(name, known) + (f"one of {', '.join(known)}" if known else otherwise)


def did_you_mean(name: object, choices: Iterable[str]) -> str:
    """The question that names the nearest choice, with a space behind it; empty where none is near."""
    near = get_close_matches(str(name).lower(), list(choices), 1)
    return f"did you mean {near[0]}? " if near else ""


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
        prefix = f"{visible(abridged(self.source, LONGEST_SOURCE))}: " if self.source else ""
        return "\n".join(prefix + line for line in self._lines())

    def _lines(self) -> Iterator[str]:
        """Faults of one kind have a line each where they are few, and share one where they are many."""
        kinds: dict[tuple[str, str], list[Fault]] = defaultdict(list)
        for fault in self.faults:
            kinds[kind_of(fault)].append(fault)
        times = {key: sum(1 + fault.more for fault in kind) for key, kind in kinds.items()}
        many = {id(kinds[key][0]): key for key in kinds if times[key] > (FEW if key[0] else len(kinds[key]))}
        alike = {id(fault) for key in many.values() for fault in kinds[key][1:]}
        for fault in self.faults:
            if id(fault) in many:
                key = many[id(fault)]
                places = [visible(abridged(other.path, LONGEST_PLACE)) for other in kinds[key][1:3] if other.path]
                then = f"; then {'; '.join(places)}; …" if places else ""
                yield f"{_line(fault)} ({times[key]:,} times{then})"
            elif id(fault) not in alike:
                yield _line(fault) + (f" (and {fault.more:,} more of this kind)" if fault.more else "")


def _line(fault: Fault) -> str:
    return str(fault) if fault.path else fault.words


class LimitError(InputError):
    """A schedule is more than an executor takes; one that is cut into fewer pieces may not be."""


class UnsupportedError(SynthError):
    """The method does not apply to this instance (for example no translation symmetry). The message says why."""


class SolverMissingError(InputError):
    """The solver asked for is unknown or not installed. The message says how to install it."""


class SizeLimitError(SynthError):
    """The model is larger than the solver's licence (or the method's documented size) allows."""
