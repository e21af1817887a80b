"""Solutions of other instances as they are: where the check accepts one, it is a solution of this instance, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synth.errors import InputError, UnsupportedError
from synth.family import get_family
from synth.instance import Instance
from synth.library.known_schedules import Known, of_others
from synth.method import Outcome, Verdict, load
from synth.options import RunOptions


def best(instance: Instance, options: RunOptions, check: Callable[[Any, Any], Verdict]) -> Outcome:
    """The best for this instance of all solutions of others of its size: a topology, a routing or a step may do for
    other delays, sizes and numbers of wavelengths. ``check``: the family's. Raises :class:`InputError` without a
    library, and :class:`UnsupportedError` where none fits.

    Complexity: a check for every instance of the family of the same size."""
    unpack = load(get_family(instance.family).unpack)
    found: tuple[float, Any, Known] | None = None
    for known in of_others(instance, options.method.get("library")):
        if found is not None and options.out_of_time():
            break
        try:
            solution = unpack(instance, known.packed())
        except (ValueError, InputError):  # of another shape
            continue
        verdict = check(instance, solution)
        if not (verdict.ok and verdict.facts.get("replayed", True)) or verdict.value is None:
            continue
        if found is None or verdict.value < found[0]:
            found = verdict.value, solution, known
    if found is None:
        raise UnsupportedError("the library has no solution of another instance that is one of this")
    _, solution, known = found
    told = f"{known.row.instance} by {known.makers[0]}"
    return Outcome("finished", solution, message=told, made_by=("composed", *known.makers))
