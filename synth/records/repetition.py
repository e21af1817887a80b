"""Run a record's method again, where that is cheap, to see whether the solution is the method's.

The name of a method is only stated in a record. A method that declares ``repeats`` gives the same solution whenever
instance, options and seed are the same, so it can be run again and compared. Others (programs, and references that look
at the clock) cannot: their names stay the record's word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from synth.arrays import SAME
from synth.errors import InputError, UnsupportedError
from synth.family import Family, function_of, get_family
from synth.instance import Instance
from synth.method import Method, Outcome, load
from synth.options import RunOptions, as_text
from synth.plugins import returned
from synth.records.record import Record
from synth.text.files import dumps
from synth.text.untrusted import equal, is_finite

CHEAP_S = 0.25  # up to which a run is made again, by the record's word
LONGEST = 8  # times what is cheap: the time limit of a run that is made again
MOST_NUMBERS = 100_000  # of a stored solution
MOST_ASKED = 1000  # of a number among the method's options: more restarts than this are not repeated
LEAST_OF_LIMIT = 0.01  # the share of its limit that a run has used at least when the clock stops it
Answer = Literal["same", "other", "other makers", "unknown"]


@dataclass(frozen=True)
class Repetition:
    """What running the method again says: the ``same`` solution, an ``other`` value, the same by ``other makers``, or
    nothing (``unknown``); why."""

    answer: Answer
    words: str


_KNOWN: dict[str, Repetition] = {}  # by what decides it


def repeat(record: Record, instance: Instance | None = None, cheap_s: float = CHEAP_S) -> Repetition:
    """Run the record's method again if it repeats and takes at most ``cheap_s`` seconds, and compare. Never raises for
    what a record holds."""
    method = _method(record)
    if isinstance(method, str):
        return Repetition("unknown", method)
    if record.run_s > cheap_s:
        return Repetition("unknown", f"not run again, it took {record.run_s:.2g} s")
    if _numbers(record.packed) > MOST_NUMBERS:
        return Repetition("unknown", f"not run again, its solution has more than {MOST_NUMBERS} numbers")
    key = _key(record)
    if key not in _KNOWN:
        try:
            _KNOWN[key] = _compared(record, method, instance or record.find_instance(), LONGEST * cheap_s)
        except Exception as error:  # options and solution are a file's
            _KNOWN[key] = Repetition("unknown", f"cannot be run again: {error!r}")
    return _KNOWN[key]


def name_stands(record: Record, cheap_s: float = CHEAP_S) -> bool:
    """Whether the record's solution is known to be its method's: run here, or run again with the same result."""
    return record.made_here or repeat(record, cheap_s=cheap_s).answer == "same"


def _method(record: Record) -> Method | str:
    """The method if it can be run again, or why not."""
    if record["kind"] == "submitted":
        return "handed in, of no method of ours"
    try:
        method = get_family(record["family"]).method(record["method"])
    except InputError:
        return "not installed here" if ":" not in record["method"] else "in a file, which no record starts"
    if method.kind != "reference" or method.needs:
        return f"a {method.kind} is not run again"
    if record.packed is None:
        return "there is no solution to compare"
    return method if method.repeats else "its solution depends on the clock or on files"


def _compared(record: Record, method: Method, instance: Instance, longest_s: float) -> Repetition:
    family = get_family(instance.family)
    options = _options(record, method, longest_s)
    large = [name for name, value in options.method.items() if isinstance(value, (int, float)) and value > MOST_ASKED]
    if large:
        return Repetition("unknown", f"not run again with {large[0]} above {MOST_ASKED}")
    try:
        outcome = returned.outcome(method, function_of(family, method), instance, options)
    except UnsupportedError as error:
        return Repetition("other", f"the method does not take this instance: {error}")
    if options.out_of_time():
        return Repetition("unknown", f"not run again, it takes more than {longest_s:g} s")
    return _judged(record, family, instance, outcome, options)


def _judged(record: Record, family: Family, instance: Instance, outcome: Outcome, options: RunOptions) -> Repetition:
    """What the run's end says of the record."""
    pack, stored = load(family.pack), load(family.unpack)(instance, record.packed)
    if outcome.solution is not None and _same(pack(outcome.solution), pack(stored)):
        made_by = list(outcome.made_by or (record["method"],))
        if record.data.get("made_by") not in (None, made_by):
            return Repetition("other makers", f"run again it is made by {', '.join(made_by)}")
        return Repetition("same", "run again: the same solution")
    value = None if outcome.solution is None else load(family.check)(instance, outcome.solution).value
    if value is not None and equal(record.value, value, SAME):
        return Repetition("unknown", "run again it gives another solution of the same value")
    return _of_another_value(record, value, options)


def _of_another_value(record: Record, value: float | None, options: RunOptions) -> Repetition:
    """What another value, or none, of the run that was made again says."""
    if options.clock.cut:  # it left out a part that did not fit, and ended in time with what it had
        return Repetition("unknown", f"not run again in full, that takes more than {options.time_limit_s:g} s")
    if value is None:
        return Repetition("other", "run again it gives no solution")
    if _may_be_worse(record) and record.value is not None and record.value > value:
        return Repetition("unknown", f"the clock stopped the run; run again it gives {value}, which is better")
    return Repetition("other", f"run again it gives {value}, not {record.value}")


def _may_be_worse(record: Record) -> bool:
    """Whether the clock stopped the run, as the record states, and can have done so by its times."""
    limit = record["options"].get("time_limit_s")
    stopped = record.data.get("stopped_by") == "clock"
    return stopped and is_finite(limit) and record.run_s >= LEAST_OF_LIMIT * limit


def _options(record: Record, method: Method, longest_s: float) -> RunOptions:
    """The run's options, read as if they had been typed. Raises what reading them raises."""
    given = record["options"].get("method", {})
    values = {
        parameter.name: parameter.default
        if given.get(parameter.name, parameter.default) == parameter.default
        else parameter.read(as_text(given[parameter.name]))
        for parameter in method.parameters
    }
    return RunOptions(longest_s, seed=int(record["options"].get("seed", 0)), method=values)


def _same(left: Any, right: Any) -> bool:
    """Whether two packed solutions are equal, number by number."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    one, other = np.asarray(left), np.asarray(right)
    return one.shape == other.shape and bool(np.array_equal(one, other))


def _numbers(packed: Any) -> int:
    if isinstance(packed, Mapping):
        return sum(_numbers(value) for value in packed.values())
    return int(np.size(packed)) if isinstance(packed, (np.ndarray, list, tuple)) else 1


def _key(record: Record) -> str:
    """A digest of what decides the answer."""
    assert record.packed is not None
    digest = hashlib.sha256(
        json.dumps([record.data.get(key) for key in ("family", "instance_sha256", "method", "stopped_by")]).encode()
    )
    stated = [record["options"], record.value, record.data.get("made_by"), _may_be_worse(record)]
    digest.update(json.dumps(stated, default=str).encode())
    for name, value in sorted(record.packed.items()):
        digest.update(name.encode())
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else dumps({"": value}, one_line=True).encode())
    return digest.hexdigest()
