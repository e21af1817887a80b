"""Instances of the topology family: nodes, the links that are fixed, and what circuits may join.

A *plant* says what there is to join: cubes and their circuit switches, any nodes and any circuit switches, or nodes of
a degree. A *link* goes both ways (two *arcs*), one way where the plant says so. A circuit may have another rate than a
fixed link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from synth.arrays import IntArray
from synth.errors import Fault
from synth.instance import Instance, Part, Unit
from synth.schedule.collective import ROOTED, CollectiveName
from synth.text.amounts import LEAST_RATE, MOST_DURATION, MOST_RATE

MAX_NODES = 4096
MAX_DEGREE = 64
MAX_CIRCUITS = 1 << 20  # that all switches together may set up, one at a time
SHOWN = 4  # nodes or pairs that a fault names
MOST_MIXED = 16  # collectives of a mix
MOST_BYTES = 2**48
MOST_PARTS = 1_000_000  # of the ratio of two rates, in lowest terms
SHARED_OUT = ("alltoall", "allgather", "reduce_scatter", "gather", "scatter")  # whose bytes are cut into equal parts

Whole = Annotated[int, Field(ge=0)]
Link = tuple[Whole, Whole]
Side = Annotated[int, Field(ge=2, le=16)]
Links = Annotated[tuple[Link, ...], Field(max_length=MAX_CIRCUITS)]


class Cubes(Part):
    """Blocks of nodes with mesh links inside, ``sides`` long, as TPU v4 has (cubes of 4 x 4 x 4).

    For each dimension and each line of a block along it there is one circuit switch: it joins the last node of the line
    in cube c to the first node of the same line in the cube that its permutation says. Node ``(c, position)`` has the
    number ``c * prod(sides) + position``, positions counted with the last dimension fastest. Switches count by
    dimension, then by line in the order of positions. ``failed``: switches that join nothing; ``failed_links``: mesh
    links that are none.
    """

    kind: Literal["cubes"] = "cubes"
    sides: Annotated[tuple[Side, ...], Field(min_length=1, max_length=3)]
    cubes: Annotated[int, Field(ge=1, le=512)]
    failed: Annotated[tuple[Whole, ...], Field(max_length=MAX_NODES)] = ()
    failed_links: Links | None = None


class Switch(Part):
    """A circuit switch: it joins each node of ``sends`` to one of ``receives``, by a permutation of its ports; port i
    of a side is the node that stands there at place i."""

    sends: Annotated[tuple[Whole, ...], Field(min_length=1, max_length=MAX_NODES)]
    receives: Annotated[tuple[Whole, ...], Field(min_length=1, max_length=MAX_NODES)]


class Switched(Part):
    """Any ``nodes``, fixed ``links`` (pairs of nodes) and circuit ``switches``."""

    kind: Literal["switches"] = "switches"
    nodes: Annotated[int, Field(ge=2, le=MAX_NODES)]
    links: Links = ()
    switches: Annotated[tuple[Switch, ...], Field(max_length=MAX_NODES * MAX_DEGREE)] = ()
    one_way: bool = False


class Budget(Part):
    """``nodes`` with at most ``degree`` links each, the fixed ``links`` among them; ``one_way`` links count apart for
    those that leave a node and those that enter it."""

    kind: Literal["degree"] = "degree"
    nodes: Annotated[int, Field(ge=2, le=MAX_NODES)]
    degree: Annotated[int, Field(ge=1, le=MAX_DEGREE)]
    links: Links = ()
    one_way: bool = False


Plant = Annotated[Cubes | Switched | Budget, Field(discriminator="kind")]


class Mixed(Part):
    """A collective of a mix over all nodes, node 0 its root if it has one. ``bytes`` counts as in nccl-tests;
    ``weight``: what a second of it adds to the value."""

    collective: CollectiveName
    bytes: Annotated[int, Field(ge=1, le=MOST_BYTES), Unit("bytes")]
    weight: Annotated[float, Field(gt=0, le=1e6)]

    @property
    def rooted(self) -> bool:
        """Whether it has a root, which is node 0."""
        return self.collective in ROOTED


@dataclass(frozen=True)
class Ports:
    """A circuit switch as arrays: the nodes at its ports, shape (ports,) each."""

    sends: IntArray
    receives: IntArray


class TopologyInstance(Instance):
    """Choose circuits, and for the objective ``load`` a routing, for ``mix`` schedules as well.

    ``load``: every node sends one unit to each other node at once, split over any paths. The value is the most that an
    arc carries, the inverse of the maximum concurrent flow; what a circuit carries counts by the rate of a fixed link
    over its own. ``hops``: the value is the sum of the hops over all ordered pairs of nodes, by shortest paths.
    ``mix``: the value is the time of every collective of ``mix`` on the network that results, alone on it, times its
    weight, all added up, in seconds.

    ``bandwidth`` of an arc in bytes/s, ``latency`` of a fixed link in seconds; ``circuit_bandwidth`` (default: the
    same) and ``circuit_latency``: of a circuit. Latencies count in mixes alone.
    """

    family: Literal["topology"] = "topology"
    plant: Plant
    objective: Literal["load", "hops", "mix"] = "load"
    mix: Annotated[tuple[Mixed, ...], Field(min_length=1, max_length=MOST_MIXED)] | None = None
    bandwidth: Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE), Unit("bytes/s")] = 128e9
    circuit_bandwidth: Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE), Unit("bytes/s")] | None = None
    latency: Annotated[float, Field(ge=0, le=MOST_DURATION), Unit("s")] = 75e-9
    circuit_latency: Annotated[float, Field(ge=0, le=MOST_DURATION), Unit("s")] = 50e-9

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        plant, faults = raw.get("plant"), [*_rate_faults(raw), *_objective_faults(raw)]
        if not isinstance(plant, dict):
            return faults
        kinds: dict[str, type[Cubes | Switched | Budget]] = {"cubes": Cubes, "switches": Switched, "degree": Budget}
        try:
            read = kinds[plant.get("kind")].model_validate(plant)  # type: ignore[index]
        except (ValueError, KeyError, TypeError):
            return faults  # pydantic's to report
        return [*faults, *_division_faults(raw, read), *_faults(read)]

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return _nodes(self.plant)

    @property
    def one_way(self) -> bool:
        """Whether a link is one arc."""
        return not isinstance(self.plant, Cubes) and self.plant.one_way

    @property
    def degree(self) -> int | None:
        """Most links of a node where the plant is of the kind ``degree``, else None."""
        return self.plant.degree if isinstance(self.plant, Budget) else None

    @cached_property
    def fixed(self) -> IntArray:
        """The fixed links, shape (links, 2)."""
        return fixed_links(self.plant)

    @cached_property
    def switches(self) -> tuple[Ports, ...]:
        """The circuit switches, none where the plant is of the kind ``degree``; one that failed has no port."""
        return circuit_switches(self.plant)

    @cached_property
    def free(self) -> IntArray:
        """Where the plant is of the kind ``degree``: the links that nodes may have beside the fixed ones, shape
        (2, nodes): those that leave (of two-way links: all) and those that enter."""
        return _free(self.plant) if isinstance(self.plant, Budget) else np.zeros((2, 0), dtype=np.int64)

    @cached_property
    def weights(self) -> tuple[int, int]:
        """The rates of a fixed link and of a circuit, as whole numbers in lowest terms."""
        ratio = _ratio(self.bandwidth, self.circuit_bandwidth)
        return ratio.denominator, ratio.numerator

    @cached_property
    def most_rate(self) -> Fraction:
        """The most that all arcs together can have of the rate of a fixed link."""
        fixed = len(self.fixed) * (1 if self.one_way else 2)
        return fixed + (self.most_arcs - fixed) * Fraction(self.weights[1], self.weights[0])

    @cached_property
    def most_arcs(self) -> int:
        """The most arcs that a topology can have."""
        ports = sum(min(len(switch.sends), len(switch.receives)) for switch in self.switches)
        if self.degree is not None:
            ports = int(self.free.sum(axis=1).min())
            ports = ports if self.one_way else ports // 2
        return (len(self.fixed) + ports) * (1 if self.one_way else 2)

    @cached_property
    def possible(self) -> IntArray:
        """All pairs of nodes that a circuit may join, shape (pairs, 2), each once; of switches alone."""
        pairs = [np.stack(np.meshgrid(s.sends, s.receives, indexing="ij"), -1).reshape(-1, 2) for s in self.switches]
        return np.unique(np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]), axis=0)


def size(instance: TopologyInstance) -> int:
    """How many nodes take part."""
    return instance.nodes


def suited(instance: TopologyInstance, method: str) -> bool:
    """Whether a default method fits the plant: cubes have tori, degrees have graphs in closed form."""
    plant = instance.plant
    match method:
        case "torus" | "twisted":
            return isinstance(plant, Cubes)
        case "circulant" | "random_regular":
            return isinstance(plant, Budget) and not plant.links and not plant.one_way
        case "complete_bipartite":
            return isinstance(plant, Budget) and not plant.links and plant.nodes == 2 * plant.degree
        case "cartesian_power" | "degree_expansion":
            return isinstance(plant, Budget) and not plant.links
        case "de_bruijn" | "kautz" | "line_graph":
            return isinstance(plant, Budget) and not plant.links and plant.one_way
        case "search":
            return isinstance(plant, Cubes) or (isinstance(plant, Budget) and not plant.links)
        case "milp":
            return instance.degree is None and instance.nodes <= 16 and instance.objective != "mix"
    return True


def _nodes(plant: Cubes | Switched | Budget) -> int:
    return plant.cubes * prod(plant.sides) if isinstance(plant, Cubes) else plant.nodes


def _ratio(bandwidth: float, circuit: float | None) -> Fraction:
    """The rate of a circuit over that of a fixed link, numbers as they are written."""
    return Fraction(repr(float(circuit))) / Fraction(repr(float(bandwidth))) if circuit else Fraction(1)


def fixed_links(plant: Cubes | Switched | Budget) -> IntArray:
    """The fixed links of a plant, shape (links, 2)."""
    if not isinstance(plant, Cubes):
        return np.array(plant.links, dtype=np.int64).reshape(-1, 2)
    every, n = mesh_links(plant), _nodes(plant)
    gone = np.array([min(link) * n + max(link) for link in plant.failed_links or ()], dtype=np.int64)
    return every[~np.isin(every.min(axis=1) * n + every.max(axis=1), gone)]


def mesh_links(plant: Cubes) -> IntArray:
    """The links inside the cubes, failed ones too, shape (links, 2)."""
    ids = np.arange(prod(plant.sides)).reshape(plant.sides)
    each = [
        np.stack([ids.take(range(side - 1), axis).ravel(), ids.take(range(1, side), axis).ravel()], axis=1)
        for axis, side in enumerate(plant.sides)
    ]
    inside = np.concatenate(each)
    found: IntArray = (inside + ids.size * np.arange(plant.cubes)[:, None, None]).reshape(-1, 2).astype(np.int64)
    return found


def lines(sides: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The lines of a cube in the order of its switches: dimension, last position, first position."""
    strides = [prod(sides[axis + 1 :]) for axis in range(len(sides))]
    for axis, side in enumerate(sides):
        others = [range(1) if other == axis else range(length) for other, length in enumerate(sides)]
        for place in product(*others):
            first = sum(x * stride for x, stride in zip(place, strides, strict=True))
            yield axis, first + (side - 1) * strides[axis], first


def circuit_switches(plant: Cubes | Switched | Budget) -> tuple[Ports, ...]:
    """The circuit switches of a plant."""
    if isinstance(plant, Budget):
        return ()
    if isinstance(plant, Switched):
        pairs = [(switch.sends, switch.receives) for switch in plant.switches]
        return tuple(Ports(*(np.array(side, dtype=np.int64) for side in pair)) for pair in pairs)
    offset, none = prod(plant.sides) * np.arange(plant.cubes), np.zeros(0, dtype=np.int64)
    made = [Ports(last + offset, first + offset) for _, last, first in lines(plant.sides)]
    return tuple(Ports(none, none) if number in plant.failed else ports for number, ports in enumerate(made))


def _free(plant: Budget) -> IntArray:
    """Links that each node may have beside the fixed ones; less than 0 where these are too many."""
    links = np.array(plant.links, dtype=np.int64).reshape(-1, 2)
    out, into = (np.bincount(links[:, end], minlength=plant.nodes) for end in (0, 1))
    used = np.stack([out, into]) if plant.one_way else np.stack([out + into] * 2)
    return (plant.degree - used).astype(np.int64)


def _rate_faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """Rates whose ratio no small whole numbers give, so that loads could not be counted in whole numbers."""
    rates = raw.get("bandwidth", 128e9), raw.get("circuit_bandwidth")
    if not all(isinstance(rate, int | float) and 0 < rate < 1e300 for rate in rates) or isinstance(rates[1], bool):
        return  # pydantic's to report
    ratio = _ratio(*rates)
    if max(ratio.numerator, ratio.denominator) > MOST_PARTS:
        words = f"over bandwidth is no ratio of whole numbers up to {MOST_PARTS}"
        yield Fault("circuit_bandwidth", words, rates[1], True)


def _objective_faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """A mix where none counts, none where one does, and rows that stand twice."""
    mix, counts = raw.get("mix"), raw.get("objective", "load") == "mix"
    if counts and mix is None:
        yield Fault("mix", "is missing: the objective mix needs its collectives")
    if not counts and mix is not None:
        yield Fault("mix", f"has no meaning with the objective {raw.get('objective', 'load')}")
    seen = list[tuple[Any, Any]]()
    for i, row in enumerate(mix if isinstance(mix, list | tuple) else ()):
        if isinstance(row, dict):
            key = row.get("collective"), row.get("bytes")
            if key in seen:
                yield Fault(f"mix[{i}]", f"{key[0]} of {key[1]} bytes stands twice: give one weight")
            seen.append(key)


def _division_faults(raw: dict[str, Any], plant: Cubes | Switched | Budget) -> Iterator[Fault]:
    """Sizes that do not divide among the nodes."""
    n, mix = _nodes(plant), raw.get("mix")
    for i, row in enumerate(mix if isinstance(mix, list | tuple) else ()):
        size = row.get("bytes") if isinstance(row, dict) else None
        if isinstance(size, int) and row.get("collective") in SHARED_OUT and size % n:
            yield Fault(f"mix[{i}].bytes", f"does not divide among {n} nodes", size, True)


def _faults(plant: Cubes | Switched | Budget) -> Iterator[Fault]:
    """What is wrong with a plant whose fields are right by themselves."""
    if isinstance(plant, Cubes):
        yield from _cube_faults(plant)
        return
    named = [(f"plant.links[{i}]", link) for i, link in enumerate(plant.links)]
    for path, (u, v) in named:
        if max(u, v) >= plant.nodes:
            yield Fault(path, f"names node {max(u, v)}, the last is {plant.nodes - 1}")
        elif u == v:
            yield Fault(path, f"joins node {u} to itself")
    if isinstance(plant, Switched):
        yield from _switch_faults(plant)
    possible = sum(len(s.sends) * len(s.receives) for s in plant.switches) if isinstance(plant, Switched) else 0
    if possible > MAX_CIRCUITS:
        yield Fault("plant.switches", f"can set up {possible} circuits, at most {MAX_CIRCUITS} are supported")
        return
    if any(max(link) >= plant.nodes for link in plant.links):
        return
    if isinstance(plant, Budget):
        yield from _budget_faults(plant)
    elif all(max(*s.sends, *s.receives) < plant.nodes for s in plant.switches):
        yield from _apart_faults(plant)


def _cube_faults(plant: Cubes) -> Iterator[Fault]:
    nodes, switches = plant.cubes * prod(plant.sides), sum(prod(plant.sides) // side for side in plant.sides)
    if nodes > MAX_NODES:
        yield Fault("plant.cubes", f"makes {nodes} nodes, at most {MAX_NODES} are supported", plant.cubes, True)
        return
    seen = set[int]()
    for i, number in enumerate(plant.failed):
        if number >= switches:
            yield Fault(f"plant.failed[{i}]", f"is no switch, the last is {switches - 1}", number, True)
        elif number in seen:
            yield Fault(f"plant.failed[{i}]", "stands twice", number, True)
        seen.add(number)
    if plant.cubes > 1 and len(set(plant.failed)) >= switches:
        yield Fault("plant.failed", f"leaves no switch, so nothing can join the {plant.cubes} cubes")
    elif plant.failed_links:
        yield from _failed_link_faults(plant)


def _failed_link_faults(plant: Cubes) -> Iterator[Fault]:
    """Failed links that are none, and nodes that they leave alone."""
    known, seen = {tuple(sorted(link)) for link in mesh_links(plant).tolist()}, set[tuple[int, ...]]()
    for i, link in enumerate(plant.failed_links or ()):
        ends = tuple(sorted(link))
        if ends not in known:
            yield Fault(f"plant.failed_links[{i}]", f"nodes {link[0]} and {link[1]} have no link inside a cube")
        elif ends in seen:
            yield Fault(f"plant.failed_links[{i}]", f"the link of nodes {link[0]} and {link[1]} stands twice")
        seen.add(ends)
    yield from _apart_faults(plant)


def _switch_faults(plant: Switched) -> Iterator[Fault]:
    for i, switch in enumerate(plant.switches):
        for side in ("sends", "receives"):
            seen = set[int]()
            for j, node in enumerate(getattr(switch, side)):
                if node >= plant.nodes:
                    yield Fault(
                        f"plant.switches[{i}].{side}[{j}]", f"is no node, the last is {plant.nodes - 1}", node, True
                    )
                elif node in seen:
                    yield Fault(
                        f"plant.switches[{i}].{side}[{j}]", "stands twice: a node has one port there", node, True
                    )
                seen.add(node)
        if len(switch.sends) != len(switch.receives):
            sizes = f"{len(switch.sends)} ports that send and {len(switch.receives)} that receive"
            yield Fault(f"plant.switches[{i}]", f"has {sizes}: a permutation needs as many")


def _budget_faults(plant: Budget) -> Iterator[Fault]:
    free = _free(plant).min(axis=0)
    over = np.flatnonzero(free < 0).tolist()
    for node in over[:SHOWN]:
        used = plant.degree - int(free[node])
        yield Fault("plant.links", f"give node {node} {used} links, more than its degree {plant.degree}")
    if over:
        return
    links = plant.nodes * plant.degree // (1 if plant.one_way else 2)
    least = plant.nodes if plant.one_way else plant.nodes - 1
    if links < least:
        words = f"allows {links} links; {plant.nodes} nodes are joined by no fewer than {least}"
        yield Fault("plant.degree", words, plant.degree, True)
    elif plant.links:
        yield from _apart_faults(plant)


def _may_join(plant: Cubes | Switched | Budget) -> Iterator[tuple[list[int], list[int]]]:
    """Nodes that send and those of which each may be joined to any of them, by a link or a circuit."""
    yield from (([u], [v]) for u, v in fixed_links(plant).tolist())
    yield from ((switch.sends.tolist(), switch.receives.tolist()) for switch in circuit_switches(plant))
    if isinstance(plant, Budget):
        out, into = _free(plant)
        yield np.flatnonzero(out > 0).tolist(), np.flatnonzero(into > 0).tolist()


def _apart_faults(plant: Cubes | Switched | Budget) -> Iterator[Fault]:
    """Nodes that cannot be reached from node 0, or cannot reach it, whatever circuits are chosen."""
    ways, nodes = list(_may_join(plant)), _nodes(plant)
    back = [(receives, sends) for sends, receives in ways]
    if isinstance(plant, Cubes) or not plant.one_way:
        ways = back = ways + back
    for rules in (ways, back):
        of_node: list[list[int]] = [[] for _ in range(nodes)]
        for number, (sends, _) in enumerate(rules):
            for node in sends:
                of_node[node].append(number)
        reached, waiting, used = {0}, [0], set[int]()
        while waiting:
            fresh = set(of_node[waiting.pop()]) - used
            found = {node for number in fresh for node in rules[number][1]} - reached
            used |= fresh
            reached |= found
            waiting += found
        apart = sorted(set(range(nodes)) - reached)
        if apart:
            names = ", ".join(map(str, apart[:SHOWN])) + (f" and {len(apart) - SHOWN} more" * (len(apart) > SHOWN))
            yield Fault("plant", f"no link and no circuit can join node 0 and these: {names}")
            return
