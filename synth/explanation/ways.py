"""What a library's algorithms should take on a machine, in parts that a cause can change.

The statement. A way w is an algorithm with a protocol. At s bytes it takes::

    T(s, w) = wait(s, w) * quick + call + sum over classes c of steps(w, c) * (latency_c + step)
              + data(s, w) * max(1, max over c of share(s, w, c) / rate_c)

``wait`` is what it takes without data on the machine as stated, ``data`` what the bytes add; c is a class of links
(inside a box, between boxes); ``steps(w, c)``: messages over c that follow each other; ``share(s, w, c)``: the part of
data's time that the links of c are busy, 1 for the busiest of all ways and sizes. On the machine as stated ``latency_c
= step = call = 0`` and ``rate_c = quick = 1``: they are seconds *more* a message, a step of any class and a call, and
shares of rates and waits. The library runs, at every size, the way that is the quickest on the machine as stated.

Two models give wait and data. ``library``: NCCL's or RCCL's own (:mod:`synth.exchange.selection.nccl_choice`); data is
its slope over bytes. ``links``: latency and bytes over rate alone (Hockney 1994; volumes and rounds as in Thakur,
Rabenseifner, Gropp 2005 and Sanders, Speck, Träff 2009), boxes first, then between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import InputError
from synth.exchange.selection.nccl_choice import LARGE, Nccl, nearest_gpu
from synth.exchange.selection.nccl_reach import LEAST_MESSAGE, Boxes
from synth.exchange.selection.nccl_tuner import NAMES
from synth.instance import Instance
from synth.tuning.reach import boxes_on, library

INSIDE, BETWEEN = "inside", "between"
_NAMES = {
    "allreduce": ("ring", "tree", "doubling", "whole doubling"), "allgather": ("ring", "doubling"),
    "reduce_scatter": ("ring", "doubling"), "broadcast": ("ring", "tree"), "reduce": ("ring", "tree"),
    "alltoall": ("direct",),
}  # fmt: skip
WIRE = {"LL": 2.0, "LL128": 128 / 120, "Simple": 1.0}  # bytes on links a byte of data: flags beside it
Make = Callable[[str, int], Instance]


class Change(NamedTuple):
    """What differs from the machine as stated: ``step`` and ``call`` in seconds, ``quick`` a share; ``latency`` in
    seconds and ``rate`` as a share by class; shapes (…, 1) or (…, sizes). ``way``: number of the way that
    runs, shape (sizes,); None: the library's choice; ``knows``: the library chooses by the changed machine."""

    step: FloatArray
    call: FloatArray
    quick: FloatArray
    latency: Mapping[str, FloatArray]
    rate: Mapping[str, FloatArray]
    way: IntArray | None = None
    knows: bool = False


NOTHING = Change(np.zeros(1), np.zeros(1), np.ones(1), {}, {})


@dataclass(frozen=True, eq=False)
class Way:
    """An algorithm with a protocol (empty where the model knows none); ``wait`` and ``data`` in seconds, shape
    (sizes,); ``steps`` and ``share``, shape (sizes,), by class of links."""

    algorithm: str
    protocol: str
    wait: FloatArray
    data: FloatArray
    steps: Mapping[str, float]
    share: Mapping[str, FloatArray]

    @property
    def words(self) -> str:
        """Both names."""
        return f"{self.algorithm} {self.protocol}".strip()

    def seconds(self, change: Change) -> FloatArray:
        """Seconds with these changes, shape (…, sizes)."""
        wait = self.wait * change.quick + change.call
        for kind, count in self.steps.items():
            wait = wait + count * (change.step + change.latency.get(kind, 0.0))
        slowest: FloatArray = np.ones(1)
        for kind, share in self.share.items():
            slowest = np.maximum(slowest, share / change.rate.get(kind, 1.0))
        return wait + self.data * slowest


@dataclass(frozen=True, eq=False)
class Library:
    """What runs on a machine: ``name`` in words; the sizes in bytes, ascending, shape (sizes,); its ways; ``group``:
    what it looks at; ``latency``: seconds of a message over each class of links as stated; ``pinned``: numbers of the
    ways that the log says, -1 where it says none, shape (sizes,); ``throughout``: an algorithm that runs at all sizes
    instead of the quickest."""

    name: str
    size: IntArray
    ways: tuple[Way, ...]
    group: Boxes
    latency: Mapping[str, float]
    pinned: IntArray
    throughout: str = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of links there are."""
        return tuple(self.latency)

    @cached_property
    def choice(self) -> IntArray:
        """The number of the way that runs at each size on the machine as stated, shape (sizes,)."""
        own = [way.algorithm == self.throughout for way in self.ways]
        skipped = np.where(own, 0.0, np.inf if any(own) else 0.0)
        found = np.argmin([way.seconds(NOTHING) + more for way, more in zip(self.ways, skipped, strict=True)], axis=0)
        return np.where(self.pinned >= 0, self.pinned, found)

    def rated(self, kind: str) -> float:
        """Bytes/s of a link of a class: of a NIC, or of what a GPU has in its box."""
        return self.group.nic if kind == BETWEEN else self.group.inside

    def seconds(self, change: Change) -> FloatArray:
        """Seconds of what runs, shape (…, sizes)."""
        if change.knows and not (self.pinned >= 0).any():
            least: FloatArray = np.min(np.broadcast_arrays(*(way.seconds(change) for way in self.ways)), axis=0)
            return least
        runs = self.choice if change.way is None else change.way
        first, *others = np.unique(runs).tolist()
        found: FloatArray = self.ways[first].seconds(change)
        for number in others:
            found = np.asarray(np.where(runs == number, self.ways[number].seconds(change), found), dtype=np.float64)
        return found

    def pinned_to(self, named: Mapping[int, tuple[str, str]]) -> Library:
        """The same, with the algorithm and protocol by size that a log names, where the model has them."""
        number = {(way.algorithm, way.protocol): k for k, way in enumerate(self.ways)}
        return replace(self, pinned=np.array([number.get(named.get(int(s), ("", "")), -1) for s in self.size]))


def libraries(make: Make, collective: str, size: Sequence[int], gpu: str | None, known: str | None) -> list[Library]:
    """The models of a collective on the machine, the likelier first: of the library that GPUs of kind ``gpu`` run, else
    of the kind that the machine's name says (``known``), and those of links alone, by the quickest algorithm of each
    size or, where no library is known to choose, by rings; ``ideal``: of links alone. Raises :class:`InputError` where
    none has an algorithm."""
    large: Any = make("allgather", LARGE)
    stated = _stated(large, collective, size)
    chooses = gpu != "ideal" and bool(gpu or known)
    links = _of_links(stated, chooses)
    own = _of_library(stated, large, gpu or known or nearest_gpu(large)) if gpu != "ideal" else []
    found = [*own, *links] if chooses else [*links, *own]
    if gpu and own:
        found = own
    if not found:
        raise InputError(f"no algorithm of {collective} is known here", large.name)
    return found


def _stated(large: Any, collective: str, size: Sequence[int]) -> Library:
    """The machine of an instance, without ways. Raises :class:`InputError`."""
    ranks = len(large.members)
    if ranks < 2:
        raise InputError("one rank runs no collective", large.name)
    group = boxes_on(large, float(Fraction(ranks - 1, ranks)))
    if group is None:
        raise InputError("no ring goes around the ranks: what they carry is not known", large.name)
    asked, sizes = group._replace(collective=collective), np.array(sorted(set(size)), dtype=np.int64)
    return Library("", sizes, (), asked, _latencies(large, asked), np.full(len(sizes), -1))


def _of_links(stated: Library, chooses: bool) -> list[Library]:
    """By links alone; ``chooses``: a library is known that chooses, as NCCL does, which doubles nothing."""
    names = [name for name in _NAMES.get(stated.group.collective, ()) if not (chooses and "doubling" in name)]
    ways = tuple(_links_ways(stated.group, names, stated.size, stated.latency))
    if not ways:
        return []
    first = replace(stated, name="links alone (latency + bytes / rate)", ways=ways)
    if chooses or len(ways) == 1:
        return [first]
    return [first, replace(first, name=f"{first.name}, by ring at all sizes", throughout="ring")]


def _of_library(stated: Library, large: Any, kind: str) -> list[Library]:
    """By the own model of the library that such GPUs run; empty for a collective that it does not know."""
    if stated.group.collective not in NAMES:
        return []
    kind = "mi300x" if kind == "mi300" else kind
    nodes = len(large.boxes) if large.hosts > 1 or len(large.boxes) < len(large.members) else None
    ways = list(_library_ways(Nccl(stated.group, nodes, kind), stated.group, stated.size))
    busiest = max(float(share.max()) for way in ways for share in way.share.values())
    ways = [replace(way, share={name: share / busiest for name, share in way.share.items()}) for way in ways]
    return [replace(stated, name=f"{library(kind)}'s own cost model on {kind}", ways=tuple(ways))]


def _latencies(large: Any, group: Boxes) -> dict[str, float]:
    """Seconds of the quickest path from the first rank to one of its box, and to one of another, by class."""
    net = large.machine.network
    graph: nx.DiGraph[int] = nx.DiGraph()
    for u, v, seconds in zip(net.src.tolist(), net.dst.tolist(), net.latency.tolist(), strict=True):
        graph.add_edge(u, v, s=min(seconds, graph.get_edge_data(u, v, {"s": math.inf})["s"]))
    first = large.members[0]
    away = nx.single_source_dijkstra_path_length(graph, first, weight="s")
    mates = set(large.members) if group.boxes == 1 else next(set(box) for box in large.boxes if first in box)
    found = {}
    for kind, ranks in ((INSIDE, mates - {first}), (BETWEEN, set(large.members) - mates)):
        if ranks:
            found[kind] = min(away.get(rank, math.inf) for rank in ranks)
    return found


def _parts(group: Boxes, inside: float, between: float) -> dict[str, float]:
    """Seconds a byte on each class of links: ``inside`` and ``between`` of the size go over a GPU's links in its box,
    and in and out of a box."""
    found = {}
    if group.width > 1 and group.inside:
        found[INSIDE] = inside / group.inside
    if group.boxes > 1:
        found[BETWEEN] = between / (group.nics * group.nic)
    return found


def _volumes(group: Boxes, algorithm: str) -> dict[str, float]:
    """Seconds a byte of an algorithm on each class of links at their rates."""
    n, boxes, width = group.ranks, group.boxes, group.width
    both = 2.0 if group.collective == "allreduce" else 1.0
    inner = (width - 1) / width if boxes > 1 else 1.0
    if algorithm == "ring":
        carried = 1.0 if group.collective in ("broadcast", "reduce") else both * (n - 1) / n
        return _parts(group, carried * inner, carried)
    if algorithm in ("nvls", "nvls_tree"):  # the switch adds and copies
        return _parts(group, 1 + 1 / width if both > 1 else 1.0, both if boxes > 2 else 1.0)
    if algorithm == "tree":
        return _parts(group, both * inner, both if boxes > 2 else both / 2 if both > 1 else 1.0)
    if algorithm == "doubling":
        return _parts(group, both * (width - 1) / width, both * (1 - 1 / boxes))
    if algorithm == "whole doubling":
        return _parts(group, math.log2(width), width * math.log2(boxes))
    if algorithm == "direct":
        return _parts(group, (width - 1) / n, width * (n - width) / n)
    return _parts(group, inner, 1.0)


def _steps(group: Boxes, algorithm: str, crossings: int) -> dict[str, float]:
    """Messages of an algorithm that follow each other, by class; a ring goes ``crossings`` times between boxes."""
    n, boxes, width = group.ranks, group.boxes, group.width
    both = 2 if group.collective == "allreduce" else 1
    if algorithm == "ring":
        found = {INSIDE: both * (n - 1 - crossings), BETWEEN: both * crossings}
    elif algorithm in ("direct", "nvls"):
        found = {INSIDE: 1 if boxes == 1 else 0, BETWEEN: 1}
    elif algorithm == "whole doubling":
        found = {INSIDE: (width - 1).bit_length(), BETWEEN: (boxes - 1).bit_length()}
    elif algorithm == "nvls_tree":
        found = {INSIDE: 1, BETWEEN: both * (boxes.bit_length() - 1)}
    else:
        found = {INSIDE: both * (width - 1).bit_length(), BETWEEN: both * (boxes - 1).bit_length()}
    kinds = [kind for kind, there in ((INSIDE, width > 1), (BETWEEN, boxes > 1)) if there]
    return {kind: float(found[kind]) for kind in kinds}


def _links_ways(group: Boxes, names: Sequence[str], size: IntArray, latency: Mapping[str, float]) -> Iterator[Way]:
    """These algorithms by the model of links alone."""
    power = group.width & (group.width - 1) == 0 and group.boxes & (group.boxes - 1) == 0
    for name in names:
        if "doubling" in name and not power:
            continue
        crossings = 0 if group.boxes == 1 else group.boxes if group.width > 1 else group.ranks - 1
        volumes, steps = _volumes(group, name), _steps(group, name, crossings)
        if volumes:
            wait = sum(count * latency[kind] for kind, count in steps.items())
            data: FloatArray = np.asarray(size * max(volumes.values()), dtype=np.float64)
            shares = {kind: value * size / data for kind, value in volumes.items()}
            yield Way(name, "", np.full(len(size), wait), data, steps, shares)


def _library_ways(model: Nccl, group: Boxes, size: IntArray) -> Iterator[Way]:
    """The algorithms and protocols by the library's own model."""
    every = [model.times(group, group.collective, s) for s in size.tolist()]
    slope = [_slopes(model, group, s) for s in size.tolist()]
    for way in every[0]:
        algorithm, protocol = way
        seconds = np.array([one[way] for one in every])
        data = np.minimum([each[way] * s for each, s in zip(slope, size.tolist(), strict=True)], seconds)
        busy = {kind: value * WIRE[protocol] * size / data for kind, value in _volumes(group, algorithm).items()}
        yield Way(algorithm, protocol, seconds - data, data, _library_steps(group, algorithm), busy)


def _library_steps(group: Boxes, algorithm: str) -> dict[str, float]:
    """As :func:`_steps`, but that NCCL counts a ring's crossings once a box, and its tree is a chain in a box."""
    found = _steps(group, algorithm, group.boxes - 1)
    if algorithm == "tree":
        both = 2 if group.collective == "allreduce" else 1
        counts = {INSIDE: both * (group.width - 1), BETWEEN: both * (group.boxes.bit_length() - 1)}
        return {kind: float(counts[kind]) for kind in found}
    return found


def _slopes(model: Nccl, group: Boxes, size: int) -> dict[tuple[str, str], float]:
    """Seconds a byte by way at a size: the model's factors change at powers of two, its waits at one size between two
    of them, so that the least slope between them is that of the data."""
    least = LEAST_MESSAGE << max((size // LEAST_MESSAGE).bit_length() - 1, 0)
    points = [least + k * (least // 4) for k in range(4)]
    every = [model.times(group, group.collective, point) for point in points]
    return {
        way: max(min((b[way] - a[way]) / (points[1] - points[0]) for a, b in pairwise(every)), 0.0) for way in every[0]
    }
