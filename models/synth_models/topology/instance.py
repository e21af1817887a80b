"""Instances of the topology family: nodes, the links that are fixed, and what circuits may join.

A *plant* says what there is to join: cubes and their circuit switches, any nodes and any circuit switches, or nodes of
a degree. A *link* goes both ways (two *arcs*), one way where the plant says so. All links have the same rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from synth.arrays import IntArray
from synth.errors import Fault
from synth.instance import Instance, Part, Unit

MAX_NODES = 4096
MAX_DEGREE = 64
MAX_CIRCUITS = 1 << 20  # that all switches together may set up, one at a time
SHOWN = 4  # nodes or pairs that a fault names

Whole = Annotated[int, Field(ge=0)]
Link = tuple[Whole, Whole]
Side = Annotated[int, Field(ge=2, le=16)]
Links = Annotated[tuple[Link, ...], Field(max_length=MAX_CIRCUITS)]


class Cubes(Part):
    """Blocks of nodes with mesh links inside, ``sides`` long, as TPU v4 has (cubes of 4 x 4 x 4).

    For each dimension and each line of a block along it there is one circuit switch: it joins the last node of the line
    in cube c to the first node of the same line in the cube that its permutation says. Node ``(c, position)`` has the
    number ``c * prod(sides) + position``, positions counted with the last dimension fastest. Switches count by
    dimension, then by line in the order of positions. ``failed``: switches that join nothing.
    """

    kind: Literal["cubes"] = "cubes"
    sides: Annotated[tuple[Side, ...], Field(min_length=1, max_length=3)]
    cubes: Annotated[int, Field(ge=1, le=512)]
    failed: Annotated[tuple[Whole, ...], Field(max_length=MAX_NODES)] = ()


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


@dataclass(frozen=True)
class Ports:
    """A circuit switch as arrays: the nodes at its ports, shape (ports,) each."""

    sends: IntArray
    receives: IntArray


class TopologyInstance(Instance):
    """Choose circuits, and for the objective ``load`` a routing as well.

    ``load``: every node sends one unit to each other node at once, split over any paths. The value is the most that an
    arc carries, the inverse of the maximum concurrent flow. ``hops``: the value is the sum of the hops over all ordered
    pairs of nodes, by shortest paths.

    ``bandwidth`` of an arc in bytes/s, ``latency`` of a fixed link and ``circuit_latency`` in seconds: what the network
    that results has. They change no value.
    """

    family: Literal["topology"] = "topology"
    plant: Plant
    objective: Literal["load", "hops"] = "load"
    bandwidth: Annotated[float, Field(gt=0), Unit("bytes/s")] = 128e9
    latency: Annotated[float, Field(ge=0), Unit("s")] = 75e-9
    circuit_latency: Annotated[float, Field(ge=0), Unit("s")] = 50e-9

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        plant = raw.get("plant")
        if not isinstance(plant, dict):
            return []
        kinds: dict[str, type[Cubes | Switched | Budget]] = {"cubes": Cubes, "switches": Switched, "degree": Budget}
        try:
            read = kinds[plant.get("kind")].model_validate(plant)  # type: ignore[index]
        except (ValueError, KeyError, TypeError):
            return []  # pydantic's to report
        return list(_faults(read))

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        plant = self.plant
        return plant.cubes * prod(plant.sides) if isinstance(plant, Cubes) else plant.nodes

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
            return isinstance(plant, Cubes) and not plant.failed
        case "circulant" | "random_regular":
            return isinstance(plant, Budget) and not plant.links and not plant.one_way
        case "de_bruijn" | "kautz":
            return isinstance(plant, Budget) and not plant.links and plant.one_way
        case "search":
            return isinstance(plant, Cubes) or (isinstance(plant, Budget) and not plant.links and not plant.one_way)
        case "milp":
            return instance.degree is None and instance.nodes <= 16
    return True


def fixed_links(plant: Cubes | Switched | Budget) -> IntArray:
    """The fixed links of a plant, shape (links, 2)."""
    if not isinstance(plant, Cubes):
        return np.array(plant.links, dtype=np.int64).reshape(-1, 2)
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


def _apart_faults(plant: Switched) -> Iterator[Fault]:
    """Nodes that cannot be reached from node 0, or cannot reach it, whatever circuits are chosen."""
    onward: list[set[int]] = [set() for _ in range(plant.nodes)]
    for u, v in plant.links:
        onward[u].add(v)
    for switch in plant.switches:
        for u in switch.sends:
            onward[u].update(switch.receives)
    back: list[set[int]] = [set() for _ in range(plant.nodes)]
    for u, ends in enumerate(onward):
        for v in ends:
            back[v].add(u)
    if not plant.one_way:
        onward = back = [there | here for there, here in zip(onward, back, strict=True)]
    for neighbours in (onward, back):
        reached, waiting = {0}, [0]
        while waiting:
            found = neighbours[waiting.pop()] - reached
            reached |= found
            waiting += found
        apart = sorted(set(range(plant.nodes)) - reached)
        if apart:
            names = ", ".join(map(str, apart[:SHOWN])) + (f" and {len(apart) - SHOWN} more" * (len(apart) > SHOWN))
            yield Fault("plant", f"no link and no circuit can join node 0 and these: {names}")
            return
