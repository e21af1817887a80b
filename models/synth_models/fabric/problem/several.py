"""Several collectives on one machine: each with its process group, bytes, release time and priority.

An instance with the collective ``several`` lists them under ``collectives``. They share all links and switches. What
one of them moves passes only ranks of its own group (with ``relay`` any rank), and nothing of it leaves a rank before
its release; of what a rank has itself, nothing before it is ready (:mod:`synth_models.fabric.problem.ready`) and what
it wants of all collectives that this one comes ``after`` has arrived. It *ends* when the last of its transfers has
arrived. Two objectives:

* ``last_end``: the moment at which the last of them ends.
* ``weighted_ends``: the mean of their ends, each weighted by its priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from synth.arrays import IntArray
from synth.errors import Fault
from synth.instance import Part, Unit
from synth_models.fabric.problem.blocks import EVERYONE, Blocks, Collective
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.order import order_faults
from synth_models.fabric.problem.ready import MOST_READY, Ready
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.problem.traffic import HeldBlock

SEVERAL: Literal["several"] = "several"
LAST_END, WEIGHTED_ENDS = "last_end", "weighted_ends"
Objective = Literal["last_end", "weighted_ends"]
AnyCollective = Literal[Collective, "several"]
Node = Annotated[int, Field(ge=0)]
MOST_BYTES = 2**48
MOST_COLLECTIVES = 256
MOST_RELEASE = 1e6  # seconds
MOST_PRIORITY = 10**6
OWN_KEYS = ("collective", "bytes", "root", "ranks", "demand", "traffic")


class OneCollective(Part):
    """One of several collectives. What an instance that has no other states too means the same. ``release``: nothing
    of it leaves a rank before. ``after``: the numbers of collectives that must have ended at a rank before its own part
    is ready. ``priority``: its weight in ``weighted_ends``."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")] | None = None
    collective: Collective = "allgather"
    bytes: Annotated[int, Field(ge=1, le=MOST_BYTES), Unit("bytes")]
    root: Node | None = None
    ranks: Annotated[tuple[Node, ...], Field(min_length=1)] | None = None
    demand: tuple[tuple[Node, Node, Annotated[int, Field(ge=1, le=MOST_BYTES)]], ...] | None = None
    traffic: tuple[HeldBlock, ...] | None = None
    release: Annotated[float, Field(ge=0, le=MOST_RELEASE), Unit("s")] = 0.0
    priority: Annotated[int, Field(ge=1, le=MOST_PRIORITY)] = 1
    ready: Annotated[Ready, Field(min_length=1)] | None = None
    after: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MOST_COLLECTIVES)] | None = None

    @property
    def own(self) -> dict[str, Any]:
        """What it states as an instance of its own would."""
        found = {key: getattr(self, key) for key in OWN_KEYS}
        return {key: value for key, value in found.items() if value is not None}


def behind(part: Any, base: Fraction, moments: Mapping[int, Fraction]) -> Any:
    """The part of an instance of several collectives whose ranks are ready as much behind ``base`` as these moments
    are, rounded down; the part itself where none is."""
    rows = {rank: min(float_below(moment - base), MOST_READY) for rank, moment in moments.items() if moment > base}
    return with_ready(part, tuple(sorted(rows.items())))


def with_ready(part: Any, ready: Ready | None) -> Any:
    """The same part with these ready times; itself where there are none."""
    if not ready:
        return part
    values = {key: getattr(part, key) for key in type(part).model_fields}
    made = type(part).model_construct(**values | {"ready": ready})
    made.__dict__["machine"] = part.machine
    return made


def called(number: int, one: OneCollective) -> str:
    """``collective 1 (gradients)``."""
    return f"collective {number}" + (f" ({one.name})" if one.name else "")


def together(blocks: Sequence[Blocks]) -> tuple[Blocks, IntArray]:
    """The blocks of all collectives one after the other, and the collective of every block."""
    first = starts([len(one.sets) for one in blocks]).tolist()

    def joined(rows: Sequence[IntArray]) -> IntArray:
        pairs = zip(rows, first, strict=False)
        return np.concatenate([np.where(row < EVERYONE, row - before, row) for row, before in pairs])

    columns = joined([one.origin for one in blocks]), joined([one.goal for one in blocks])
    size, sums = np.concatenate([one.bytes for one in blocks]), np.concatenate([one.sums for one in blocks])
    made = Blocks(*columns, size, sums, tuple(chain.from_iterable(one.sets for one in blocks)))
    return made, np.repeat(np.arange(len(blocks)), [len(one) for one in blocks]).astype(np.int64)


def objective_of(ends: Sequence[Fraction], collectives: Sequence[OneCollective], objective: str | None) -> Fraction:
    """What is minimised, in seconds, of the ends of all collectives."""
    if objective != WEIGHTED_ENDS:
        return max(ends, default=Fraction(0))
    weights = [one.priority for one in collectives]
    return sum((w * end for w, end in zip(weights, ends, strict=True)), Fraction(0)) / sum(weights)


def several_faults(raw: Mapping[str, Any]) -> Iterator[Fault]:
    """What concerns ``collective``, ``collectives``, ``objective`` and the keys that have no meaning beside them."""
    listed = raw.get("collectives")
    if raw.get("collective") != SEVERAL:
        if listed is not None:
            yield Fault("collectives", f"needs collective {SEVERAL}", raw.get("collective", "allgather"), True)
        if raw.get("objective") is not None:
            yield Fault("objective", f"has no meaning without collective {SEVERAL}")
        return
    if listed is None:
        yield Fault("collectives", "is missing: the collective several needs a list of them")
    for key in ("root", "ranks", "demand", "traffic", "ready"):
        if raw.get(key) is not None:
            yield Fault(key, "belongs into the entries of collectives")
    if raw.get("scenarios") is not None:
        yield Fault("scenarios", f"has no meaning with collective {SEVERAL}")
    yield from order_faults(raw)
    rows = listed if isinstance(listed, (list, tuple)) else ()
    sizes = [row.get("bytes") for row in rows if isinstance(row, dict)]
    whole, total = [size for size in sizes if type(size) is int], raw.get("bytes")
    if sizes and len(whole) == len(sizes) and isinstance(total, int) and sum(whole) != total:
        yield Fault("bytes", f"must be the sum over all collectives, {sum(whole)}", total, True)


def rows_of(raw: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every entry as the raw instance that has no other collective."""
    own = (*OWN_KEYS, "collectives", "objective", "scenarios", "ready")
    shared = {key: value for key, value in raw.items() if key not in own}
    listed = raw.get("collectives")
    for number, row in enumerate(listed if isinstance(listed, (list, tuple)) else ()):
        if isinstance(row, dict):
            yield number, shared | {key: row[key] for key in (*OWN_KEYS, "ready") if row.get(key) is not None}


def placed(number: int, fault: Fault) -> Fault:
    """A fault of one collective as one of the instance that lists it."""
    if fault.path.split("[")[0].split(".")[0] in (*OWN_KEYS, "ready"):
        return replace(fault, path=f"collectives[{number}].{fault.path}")
    return replace(fault, path=f"collectives[{number}], network") if fault.path == "network" else fault


def links_in(whole: Machine, part: Machine) -> IntArray:
    """The numbers in ``whole`` of the links of ``part``, both what is left of one file's machine."""
    found: IntArray = np.searchsorted(whole.file_links, part.file_links).astype(np.int64)
    return found
