"""Method ``spines``: the whole machine where cables or spines have failed, in as many phases as the bound asks for.

Flows choose their columns (``spine_counts.py``), every spine is coloured alone and halves of routes over two spines are
joined (``spine_timetable.py``); König then names the servers (``parts/server_names.py``). Phases come in groups of u, a
divisor of m and of their number, as in ``columns``: the largest u for which that succeeds, then more phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synth.arrays import BoolArray
from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.instance import Block, MLFMInstance
from synth_models.mlfm.parts.leaf_phases import LeafPhases
from synth_models.mlfm.parts.leaf_problem import working
from synth_models.mlfm.references.spine_counts import counted
from synth_models.mlfm.references.spine_timetable import timetable

MAX_RANKS = 20_000  # servers: their pairs are replayed
MAX_FLOWS = 40_000_000
MORE = (0, 1, 2, 4, 8, 16, 32)  # multiples of m above the bound that are tried


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``spines``. Raises :class:`UnsupportedError` for other jobs and :class:`SizeLimitError`."""
    _suits(instance)
    bound, reason = machine_bound(instance)
    if bound is None:
        return Outcome("infeasible", message=reason)
    held: dict[str, Any] = {"bound": float(bound.phases), "bound_proof": bound.words, "certificate": bound.certificate}
    usable = working(instance)
    for phases, length in _numbers(bound.phases, instance):
        found = _scheduled(instance, usable, phases // length, length, options.seed)
        if found is not None:
            ended: Any = "optimal" if phases == bound.phases else "finished"
            joined = int(np.count_nonzero(found.onto >= 0))
            words = f"{phases // length} groups of {length} phases; {joined} flows over two spines"
            return Outcome(ended, found, message=words, **held)
        if options.out_of_time():
            break
    return Outcome("time_limit", message="no place for all flows in time", **held)


def _suits(instance: MLFMInstance) -> None:
    """Raise :class:`UnsupportedError` where a leaf may have more working cables than servers, or lacks servers."""
    d, failed = instance.d, instance.failed
    if instance.demand is not None or instance.block != Block(layers=d, columns=d + 1, servers=d):
        raise UnsupportedError("spines needs the whole machine, all of whose servers send to all")
    if failed.leaves or failed.servers or instance.routes != "detour":
        raise UnsupportedError("spines needs routes = detour, and nothing but spines and cables may have failed")
    if instance.ranks > MAX_RANKS:
        raise SizeLimitError(f"more than {MAX_RANKS} servers to replay")


def _numbers(least: int, instance: MLFMInstance) -> Iterator[tuple[int, int]]:
    """Numbers of phases to try, with the lengths of their groups."""
    d = instance.d
    for length in (length for length in range(d, 0, -1) if d % length == 0 and least % length == 0):
        if instance.leaves**2 * d * (d // length) <= MAX_FLOWS:
            yield least, length
    for more in MORE:
        yield (-(-least // d) + more) * d, d


def _scheduled(instance: MLFMInstance, usable: BoolArray, groups: int, length: int, seed: int) -> LeafPhases | None:
    """The schedule in so many groups of ``length`` phases, or None."""
    each = instance.d * instance.d // length
    found = counted(usable, each, groups, seed)
    made = None if found is None else timetable(usable, found, each, groups, seed)
    if made is None:
        return None
    phases = LeafPhases(instance.d, length, made.to, made.onto)
    return phases if phases.fault is None else None
