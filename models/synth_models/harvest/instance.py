"""Instances of the harvest family: a sequence of communication steps on a fabric whose topology can be changed.

The file lists the steps themselves, so that any collective algorithm is data; ``algorithm`` only says where they come
from. Times in seconds, bandwidth in bytes per second, sizes in bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from sys import float_info
from typing import Annotated, Any, Literal, TypeGuard

import numpy as np
from pydantic import Field

from synth.arrays import FloatArray, IntArray
from synth.errors import Fault
from synth.instance import Instance, Part, Unit

LARGEST_VOLUME = 1 << 40  # of a pair in a step, all its entries together: sums of 4096 of them are exact as floats
MANY_PAIRS = 50_000  # of all steps together, beyond which a file has a step a line

Gpu = Annotated[int, Field(ge=0)]
Volume = Annotated[int, Field(ge=1, le=LARGEST_VOLUME)]
PortsRow = tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(ge=0)]]


class Step(Part):
    """One step: every listed pair ``(source, destination)`` exchanges ``bytes`` bytes, all pairs at once.

    Written as ``pairs`` or, when every GPU u sends to ``(u + shift) mod gpus``, as ``shift``. Any matrix of demands is
    a step (one-to-many, section 3.3): ``volumes``, one a pair, say how many times ``bytes`` each of them exchanges (1
    unless given), and a pair that stands again exchanges all its volumes together. A GPU may send to, or receive from,
    more others than it has ports: their data goes by way of other GPUs. A step of no bytes (a synchronisation, say)
    still takes ``alpha + hop_delay * L``, L being the fewest hops within which every pair can be reached.
    ``overlap`` is how much of a reconfiguration before this step is hidden behind computation that is known beforehand;
    the first topology being free, the first step's says nothing.
    """

    bytes: Annotated[float, Field(ge=0)]
    pairs: tuple[tuple[Gpu, Gpu], ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    shift: Annotated[int, Field(ge=1)] | None = None
    overlap: Annotated[float, Field(ge=0), Unit("s")] | None = None


class Candidate(Part):
    """A topology to be tried beside the generated ones: ``links`` are ``[src, dst, parallel links]``."""

    name: Annotated[str, Field(min_length=1)]
    links: tuple[tuple[Gpu, Gpu, Annotated[int, Field(ge=1)]], ...]


class HarvestInstance(Instance):
    """When to change the topology during a collective, and to what.

    ``gpus`` GPUs with ``ports`` ports of ``port_bandwidth`` bytes/s each (a GPU's full capacity is the product).
    ``alpha`` is the start-up time of a step, ``delta`` the propagation time of a hop (left out of the cost when
    ``latency`` is ``"off"``, as in the paper's appendix A). A step of m bytes a volume takes, with routes of at most L
    hops and a largest sum u of shares times volumes per parallel link, ``alpha + min over L of hop_delay * L + m * u /
    port_bandwidth``; with m = 0 the rates drop out, and what is left is ``alpha + hop_delay * L`` for the least L that
    reaches every pair. The ports limit topologies, not steps.

    The first topology is free. A change takes ``reconfiguration_delay``, and ``delay_per_circuit`` for every circuit
    that it sets up, and what ``delay_by_ports`` says for the number of ports that it changes; the ``overlap`` of the
    step it precedes is hidden, the rest (if any) is paid. A circuit is one link from a GPU to another; it is *set up*
    when it was not there before, parallel links counted one by one; one that ends and leaves its ports idle costs
    nothing by itself. Ports are here the inputs and outputs of the optical switch, ``2 * gpus * ports`` in all; one
    *changes* when it is joined to another GPU than before, to none after one, or to one after none.
    ``delay_by_ports`` has rows ``[ports, seconds]``, both rising: a change of at most that many ports takes this long.
    """

    family: Literal["harvest"] = "harvest"
    gpus: Annotated[int, Field(ge=2, le=4096)]
    ports: Annotated[int, Field(ge=1, le=64)]
    port_bandwidth: Annotated[float, Field(gt=0), Unit("bytes/s")]
    alpha: Annotated[float, Field(ge=0), Unit("s")]
    delta: Annotated[float, Field(ge=0), Unit("s")]
    reconfiguration_delay: Annotated[float, Field(ge=0), Unit("s")]
    delay_per_circuit: Annotated[float, Field(ge=0), Unit("s")] | None = None
    delay_by_ports: Annotated[tuple[PortsRow, ...], Field(min_length=1)] | None = None
    latency: Literal["on", "off"] = "on"
    algorithm: dict[str, str | int | float] | None = None
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        return list(_faults(raw))

    def to_json(self) -> str:
        """The instance file's text; where there are very many pairs, with a step a line."""
        if sum(len(step.pairs or ()) for step in self.steps) <= MANY_PAIRS:
            return super().to_json()
        stated = self.model_dump(mode="json", exclude_none=True)
        steps = ",\n    ".join(json.dumps(step) for step in stated.pop("steps"))
        return f'{json.dumps(stated, indent=2)[:-2]},\n  "steps": [\n    {steps}\n  ]\n}}\n'

    @cached_property
    def demands(self) -> tuple[IntArray, ...]:
        """Every step's matrix as rows (source, destination, volume), shape (pairs, 3): each pair once, in the order in
        which the file first names it."""
        sources = np.arange(self.gpus, dtype=np.int64)
        return tuple(
            np.stack([sources, (sources + step.shift) % self.gpus, np.ones_like(sources)], axis=1)
            if step.shift is not None
            else _added_up(step.pairs or (), step.volumes, self.gpus)
            for step in self.steps
        )

    @cached_property
    def pairs(self) -> tuple[IntArray, ...]:
        """The pairs of every step, each of shape (pairs, 2), in the order of ``demands``."""
        return tuple(np.ascontiguousarray(rows[:, :2]) for rows in self.demands)

    @cached_property
    def bytes_per_pair(self) -> FloatArray:
        """Bytes of a pair of volume 1 in every step, shape (steps,)."""
        return np.array([step.bytes for step in self.steps])

    @cached_property
    def overlap(self) -> FloatArray:
        """Seconds of a reconfiguration before every step that are hidden, shape (steps,)."""
        return np.array([step.overlap or 0.0 for step in self.steps])

    @property
    def delay_varies(self) -> bool:
        """Whether the time of a change depends on what changes."""
        return bool(self.delay_per_circuit) or self.delay_by_ports is not None

    @property
    def hop_delay(self) -> float:
        """``delta``, or 0 when latency is off: what a hop adds to the cost."""
        return self.delta if self.latency == "on" else 0.0


def _added_up(pairs: Sequence[tuple[int, int]], volumes: Sequence[int] | None, gpus: int) -> IntArray:
    """Rows (source, destination, volume): every pair once, with the sum of its volumes."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    _, first, at = np.unique(ends[:, 0] * gpus + ends[:, 1], return_index=True, return_inverse=True)
    total = np.zeros(len(first), dtype=np.int64)
    np.add.at(total, at, 1 if volumes is None else np.array(volumes, dtype=np.int64))
    order = np.argsort(first)
    return np.concatenate([ends[first[order]], total[order, None]], axis=1)


def _faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """Everything that concerns several fields; parts of the wrong type are pydantic's to report."""
    gpus, ports = raw.get("gpus"), raw.get("ports")
    if not _is_count(gpus):
        return
    most = ports if _is_count(ports) else None
    if most is not None:
        yield from _table_faults(raw.get("delay_by_ports"), 2 * gpus * most)
    steps = raw.get("steps")
    for index, step in enumerate(_list(steps)):
        if isinstance(step, dict):
            yield from _step_faults(f"steps[{index}]", step, gpus)
    candidates, names = raw.get("candidates"), set[Any]()
    for index, candidate in enumerate(_list(candidates)):
        if not isinstance(candidate, dict):
            continue
        where, name = f"candidates[{index}]", candidate.get("name")
        if isinstance(name, str) and name in names:
            yield Fault(f"{where}.name", "stands twice", name, True)
        names.add(name if isinstance(name, str) else None)
        if _rows(candidate.get("links"), 3):
            yield from _link_faults(f"{where}.links", candidate["links"], gpus, most)


def _table_faults(rows: Any, every_port: int) -> Iterator[Fault]:
    """Numbers of ports that do not rise, times that fall, and changes that no row is for."""
    numbers = [row for row in _list(rows) if isinstance(row, (list, tuple)) and len(row) == 2]
    if not numbers or len(numbers) < len(_list(rows)) or not all(_is_count(n) and _is_time(t) for n, t in numbers):
        return
    for index, (before, after) in enumerate(pairwise(numbers), start=1):
        if after[0] <= before[0]:
            yield Fault(f"delay_by_ports[{index}]", f"the number of ports must be above {before[0]}", after[0], True)
        if after[1] < before[1]:
            message = f"the time must not be below {before[1]:g}, that of fewer ports"
            yield Fault(f"delay_by_ports[{index}]", message, after[1], True)
    if numbers[-1][0] < every_port:
        message = f"the last row must be for all 2 * gpus * ports = {every_port} ports"
        yield Fault(f"delay_by_ports[{len(numbers) - 1}]", message, numbers[-1][0], True)


def _step_faults(where: str, step: dict[str, Any], gpus: int) -> Iterator[Fault]:
    shift, pairs, volumes = step.get("shift"), step.get("pairs"), step.get("volumes")
    if (shift is None) == (pairs is None):
        yield Fault(where, "give pairs or shift, one of the two")
        return
    if volumes is not None and len(_list(volumes)) != len(_list(pairs)):
        yield Fault(f"{where}.volumes", f"must be one a pair: {len(_list(volumes))} for {len(_list(pairs))} pairs")
    if shift is not None:
        if _is_count(shift) and shift >= gpus:
            yield Fault(f"{where}.shift", f"must be < gpus = {gpus}", shift, True)
        return
    if pairs == [] or pairs == ():
        yield Fault(f"{where}.pairs", "a step has at least one pair")
    if pairs is not None and _rows(pairs, 2):
        yield from _end_faults(f"{where}.pairs", pairs, gpus)
        yield from _volume_faults(f"{where}.pairs", pairs, _list(volumes))


def _volume_faults(where: str, pairs: Sequence[Sequence[int]], volumes: Sequence[Any]) -> Iterator[Fault]:
    """Pairs that stand so often, or with such volumes, that they exchange more than can be counted."""
    total = Counter[tuple[int, int]]()
    for (src, dst), volume in zip(pairs, volumes or [1] * len(pairs), strict=False):
        total[src, dst] += volume if _is_count(volume) else 0
    for (src, dst), volume in total.items():
        if volume > LARGEST_VOLUME:
            yield Fault(where, f"{src} to {dst} has volume {volume} in all, must be <= {LARGEST_VOLUME}")


def _end_faults(where: str, rows: Sequence[Sequence[int]], gpus: int) -> Iterator[Fault]:
    """Ends out of range, and GPUs that send to themselves."""
    for index, (src, dst) in enumerate(rows):
        for end in (src, dst):
            if not 0 <= end < gpus:
                yield Fault(f"{where}[{index}]", f"GPU {end} is out of range: there are 0..{gpus - 1}")
        if src == dst:
            yield Fault(f"{where}[{index}]", f"GPU {src} sends to itself")


def _link_faults(where: str, rows: Sequence[Sequence[int]], gpus: int, ports: int | None) -> Iterator[Fault]:
    """Ends out of range, loops, repeated ends, and (unless ``ports`` is None) more links at a GPU than ports."""
    yield from _end_faults(where, [row[:2] for row in rows], gpus)
    seen: set[tuple[int, int]] = set()
    leaving, entering = Counter[int](), Counter[int]()
    for index, (src, dst, count) in enumerate(rows):
        if (src, dst) in seen:
            yield Fault(f"{where}[{index}]", f"{src} to {dst} stands twice")
        seen.add((src, dst))
        leaving[src] += count
        entering[dst] += count
    for word, totals in (("sends on", leaving), ("receives on", entering)):
        for gpu, total in sorted(totals.items()):
            if ports is not None and total > ports:
                yield Fault(where, f"more ports used than exist: GPU {gpu} {word} {total}, ports = {ports}")


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= float_info.max


def _rows(value: Any, width: int) -> bool:
    """Whether it is a list of rows of that many whole numbers."""
    return isinstance(value, (list, tuple)) and all(
        isinstance(row, (list, tuple))
        and len(row) == width
        and all(isinstance(number, int) and not isinstance(number, bool) for number in row)
        for row in value
    )


def size(instance: HarvestInstance) -> int:
    """Return the number of GPUs."""
    return instance.gpus
