"""Options of a run, and typed parameters given as ``key=value`` texts."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from synth.clock import start_up_costs
from synth.clock.deadline import Clock, Held, stopping
from synth.clock.progress import Progress
from synth.errors import Fault, InputError, one_of
from synth.text import amounts

MOST_SHOWN = 200  # characters of a graph's own words
RELATIVE_GAP = 1e-4
"""At which a solver may stop, where nothing else is asked for: (value - bound) / value."""


@dataclass(frozen=True)
class Parameter:
    """One ``key=value`` parameter: how to read it, its default and what it means.

    One that is a ``question`` asks for something else than the best solution (this number of steps and no other): its
    runs' records have addresses of their own. What they hold, schedules and bounds, must hold for the instance itself.
    """

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str
    question: bool = False
    at_most: bool = False  # asks for a value of the objective of at most this: a bound above it answers "infeasible"

    @property
    def takes(self) -> str:
        """Which texts can be read, in the words that a wrong one meets."""
        try:
            self.read("")
        except ValueError as error:
            return str(error).removeprefix("must be ").removeprefix("a ")
        return "text"


@dataclass(frozen=True)
class RunOptions:
    """What the user asked of one run. ``method`` holds the method's own parameters, defaults filled in.

    ``relative_gap`` and ``threads`` go to the solver; the seed goes to solvers and to every random choice of ours.
    A method that finds incumbents or bounds on its way notes them in ``progress``.
    """

    time_limit_s: float | None = 60.0
    relative_gap: float = RELATIVE_GAP
    threads: int = 1
    seed: int = 0
    solver: str | None = None
    method: Mapping[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic, compare=False)
    not_counted: float = field(default_factory=start_up_costs.not_counted, compare=False)
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)
    held: Held = field(default_factory=Held, compare=False, repr=False)
    clock: Clock = field(default_factory=Clock, compare=False, repr=False)

    def started_now(self) -> RunOptions:
        """The same options for a run of their own: a new clock, no progress, and nothing held."""
        start_up_costs.used = False
        return self._anew(self.time_limit_s, Clock())

    def part(self, share: float = 1.0, *, most_s: float = math.inf) -> RunOptions:
        """The options for a part of this run, such as another instance: it may take that share of the time left, and
        at most ``most_s`` seconds. It has no progress and holds nothing; what ends it also cuts this run."""
        left = self.remaining()
        limit = min(most_s, math.inf if left is None else share * left)
        return self._anew(None if limit == math.inf else limit, self.clock)

    def _anew(self, limit: float | None, clock: Clock) -> RunOptions:
        begun: dict[str, Any] = {
            "started": time.monotonic(),
            "not_counted": start_up_costs.not_counted(),
            "progress": Progress(),
            "held": Held(),
        }
        return replace(self, time_limit_s=limit, clock=clock, **begun)

    def remaining(self) -> float | None:
        """Seconds left until the time limit, never negative; None without a limit. Compiling does not count, nor
        do kernels that run as plain Python instead: a first run finds what a later one finds."""
        if self.time_limit_s is None:
            return None
        spent = time.monotonic() - self.started - (start_up_costs.not_counted() - self.not_counted)
        return max(0.0, self.time_limit_s - spent)

    def out_of_time(self) -> bool:
        """Whether the time limit has passed. Who asks stops if so: the run then counts as cut by the clock."""
        passed = self.remaining() == 0.0
        self.clock.cut |= passed
        return passed

    def fits(self, seconds: float) -> bool:
        """Whether what takes about so many seconds and cannot be interrupted ends in time. Who asks leaves it out if
        not: the run then counts as cut by the clock."""
        left = self.remaining()
        late = left is not None and seconds > left
        self.clock.cut |= late
        return not late

    def in_time(self) -> stopping:
        """Leave a ``with`` block once these options' time is over, wherever it is
        (:class:`synth.clock.deadline.stopping`).
        What the block has not handed over by then, to ``held`` or to its surroundings, is lost."""
        return stopping(self.remaining, self.clock)

    def as_record(self) -> dict[str, Any]:
        """The options as a record stores and ``--resume`` compares them."""
        return {
            "time_limit_s": self.time_limit_s,
            "relative_gap": self.relative_gap,
            "threads": self.threads,
            "seed": self.seed,
            "method": dict(self.method),
        }


def asked(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> str:
    """What these values ask instead of the best solution, as ``horizon=12``, fit for file names; else empty."""
    own = [p for p in parameters if p.question and values.get(p.name, p.default) != p.default]
    return re.sub(r"[^A-Za-z0-9_=-]", "_", "-".join(f"{p.name}={as_text(values[p.name])}" for p in own))


def as_text(value: Any) -> str:
    """A typed value as one would type it behind ``key=``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ",".join(map(as_text, value))
    if value is None or isinstance(value, (str, int, float)):
        return str(value)
    graph = hasattr(
        value, "number_of_edges"
    )  # NetworkX says what it is in a line; the instance holds what was made of it
    return f"({str(value)[:MOST_SHOWN]})" if graph and str(value).isprintable() else f"({type(value).__name__})"


def read_flag(text: str) -> bool:
    """``on``/``off`` (also true/false, yes/no, 1/0)."""
    value = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
    if text.lower() not in value:
        raise ValueError("must be on or off")
    return value[text.lower()]


def read_int(least: int, most: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers in a range."""

    def read(text: str) -> int:
        limits = f">= {least}" + (f" and <= {most}" if most is not None else "")
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"must be a whole number {limits}") from None
        if number < least or (most is not None and number > most):
            raise ValueError(f"must be {limits}")
        return number

    return read


def read_choice(*choices: str) -> Callable[[str], str]:
    """A reader of one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return read


def read_duration(text: str) -> float:
    """Seconds from texts like ``90``, ``60s``, ``1.5m``, ``2h``; must be > 0."""
    return amounts.wall_time(text)


def read_limit(limit: str | float | None) -> float | None:
    """A time limit in seconds, None for none: as :func:`read_duration`, or ``none``; what is a number or None stays."""
    if isinstance(limit, str):
        return None if limit == "none" else read_duration(limit)
    return limit


def given_limit(limit: str | float | None) -> float | None:
    """A time limit given from Python in seconds, None for none: ``20``, ``"20s"``, ``"5m"``, ``"none"``. Raises
    :class:`InputError`."""
    words = "must be a duration > 0 such as 90, 60s, 5m or 2h, or none"
    try:
        seconds = read_limit(limit)
        if isinstance(seconds, bool) or not (seconds is None or seconds > 0):
            raise ValueError(words)
    except (TypeError, ValueError):
        raise InputError([Fault("time_limit", words, limit, True)]) from None
    return None if seconds == math.inf else seconds


def given_gap(gap: str | float) -> float:
    """A relative gap given from Python: ``1e-4``, ``"0.01%"``. Raises :class:`InputError`."""
    words = "must be a gap from 0 to 1 such as 1e-4 or 0.01%"
    try:
        text = gap.strip() if isinstance(gap, str) else ""
        share = amounts.real(text.removesuffix("%"), "number") / (100 if text.endswith("%") else 1) if text else gap
        if isinstance(gap, bool) or not 0 <= float(share) <= 1:
            raise ValueError(words)
    except (TypeError, ValueError):
        raise InputError([Fault("gap", words, gap, True)]) from None
    return float(share)


def given_megabytes(memory: str | float | None) -> float | None:
    """A limit of memory given from Python in megabytes (10^6 bytes), None for none: ``500``, ``"4G"``. Raises
    :class:`InputError`."""
    words = "must be a size > 0 such as 500M or 4G, a number being megabytes"
    try:
        found = read_megabytes(memory) if isinstance(memory, str) else memory
        if isinstance(found, bool) or not (found is None or 0 < found < math.inf):
            raise ValueError(words)
    except (TypeError, ValueError):
        raise InputError([Fault("memory_mb", words, memory, True)]) from None
    return found


def read_factor(text: str) -> float | None:
    """The factor of texts like ``2x`` and ``1.5x``; None for others. Raises ``ValueError`` when it is 0."""
    match = re.fullmatch(r"\s*([0-9]{0,6}\.?[0-9]{1,6})\s*x\s*", text.lower())
    if match is None:
        return None
    if float(match[1]) <= 0:
        raise ValueError("must be a factor > 0 such as 2x")
    return float(match[1])


def read_megabytes(text: str) -> float:
    """Megabytes (10^6 bytes) from texts like ``500M``, ``4G``, ``4GiB``; a bare number is megabytes; must be > 0."""
    return amounts.megabytes(text)


def split_pairs(pairs: Iterable[str], what: str) -> dict[str, str]:
    """``["a=1", "b=x"]`` as a dict. Raises :class:`InputError` for a pair without ``=`` and for a key given twice."""
    result: dict[str, str] = {}
    faults = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            faults.append(Fault("", f"{what}: expected key=value, got {pair!r}"))
        elif key in result:
            faults.append(Fault("", f"{what}: {key} is given twice"))
        result[key] = value
    if faults:
        raise InputError(faults)
    return result


def read_parameters(given: Mapping[str, str], known: Iterable[Parameter], what: str) -> dict[str, Any]:
    """Typed values of all known parameters, defaults filled in. Raises :class:`InputError` listing every fault."""
    known = list(known)
    names = {parameter.name for parameter in known}
    faults = [
        Fault(
            "",
            f"{what}: unknown parameter {key!r}; {one_of(key, sorted(names), 'it takes none')}",
        )
        for key in given
        if key not in names
    ]
    values = {}
    for parameter in known:
        values[parameter.name] = parameter.default
        if parameter.name in given:
            try:
                values[parameter.name] = parameter.read(given[parameter.name])
            except ValueError as error:
                faults.append(Fault(f"{what}: {parameter.name}", str(error), given[parameter.name], True))
    if faults:
        raise InputError(faults)
    return values
