"""Boxes, alike or not, joined to one machine by the switches that they share or by a fat tree of leaves and spines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from synth_models.fabric.problem.box_data import MachineFile, MachineLink
from synth_models.fabric.problem.link_rows import LinkRows
from synth_models.fabric.problem.machine import Machine

SPINE_PORTS = 64  # NVIDIA QM9700, DGX SuperPOD reference architecture: 16 spines for 128 boxes of 8 ports, 8 for 64


@dataclass(frozen=True)
class Above:
    """What is above the boxes: without ``leaf`` the switches that they share, with it a fat tree.

    Every ``leaf`` boxes have leaf switches of their own: one for each shared switch (``rails``), or one for all their
    ports. Every leaf switch is joined to each of ``spines`` spine switches (None: as many as switches of
    :data:`SPINE_PORTS` ports take), and its links to them carry together what the ports of ``leaf`` boxes do, divided
    by ``oversubscription``.
    """

    leaf: int | None = None
    rails: bool = True
    oversubscription: float = 1.0
    spines: int | None = None


@dataclass(frozen=True, eq=False)
class Box:
    """One box: its data, and how many of its ranks are there (the first ones, and the switches that lead to them)."""

    data: MachineFile
    ranks: int

    @property
    def ports(self) -> list[MachineLink]:
        """Its links to shared switches, one for both directions."""
        shared = set(self.data.shared_switches)
        return [link for link in self.data.uplinks if link.dst in shared or (link.both and link.src in shared)]


class Cluster:
    """Boxes and what is above them. Ranks come first, box after box, then every box's switches, then those of NVLink
    domains, then those that boxes share (or a fat tree's)."""

    def __init__(self, boxes: Sequence[Box], above: Above, name: str) -> None:
        self.boxes, self.name = boxes, name
        self.several = len(boxes) > 1
        self.shared = list(dict.fromkeys(switch for box in boxes for switch in box.data.shared_switches))
        if above.leaf is not None and not self.shared:
            raise ValueError(f"leaf: machine {name} has no switches between its boxes")
        if above.leaf is not None and not self.several:
            raise ValueError("leaf has no meaning for one box")
        self.tree = None if above.leaf is None else LeafSpine(boxes, self.shared, above, above.leaf)

    def size(self) -> tuple[int, int]:
        """About how many nodes and links it has, without building it."""
        data = [box.data for box in self.boxes]
        nodes = sum(one.gpus + len(one.switches) + len(one.box_switches) for one in data)
        links = sum(2 * (len(one.links) + len(one.uplinks)) for one in data)
        if self.tree is None:
            return nodes, links
        leaves = self.tree.groups * len(self.tree.kinds)
        return nodes + leaves + self.tree.spines, links + 2 * leaves * self.tree.spines

    @cached_property
    def domains(self) -> list[int]:
        """The number of every box's NVLink domain: boxes that follow one another and are alike, as many as it holds."""
        found: list[int] = []
        begun = 0
        for b, box in enumerate(self.boxes):
            alike = b > 0 and box.data is self.boxes[b - 1].data
            full = b - begun == box.data.domain
            if b == 0 or not alike or full:
                begun = b
                found.append(found[-1] + 1 if found else 0)
            else:
                found.append(found[-1])
        return found

    def machine(self) -> Machine:
        """The machine."""
        names, rows = self.built()
        return rows.machine(names, set(range(sum(self.sizes), len(names))), self.name)

    @property
    def sizes(self) -> list[int]:
        """How many ranks every box has."""
        return [box.ranks for box in self.boxes]

    def built(self) -> tuple[list[str], LinkRows]:
        """The names of its nodes, and its links."""
        names, number = self._nodes()
        rows = LinkRows()
        for b, box in enumerate(self.boxes):
            data = box.data
            for link in (*data.links, *(data.uplinks if self.several else ())):
                group = None if link.group is None else f"{b}/{link.group}"
                if (b, link.src) in number and (b, link.dst) in number:
                    rows.add(number[b, link.src], number[b, link.dst], link, group, link.both)
        rows.abilities = {
            node: self.boxes[b].data.abilities[name]
            for (b, name), node in number.items()
            if name in self.boxes[b].data.abilities
        }
        if self.tree is not None:
            place = {name: node for node, name in enumerate(names)}
            for leaf, spine, link in self.tree.links():
                rows.add(place[leaf], place[spine], link, None, True)
        return names, rows

    def _nodes(self) -> tuple[list[str], dict[tuple[int, str], int]]:
        """The names of all nodes, and the number of a box's node by its name there."""
        own = [*self._ranks(), *self._box_switches()]
        number = {node: place for place, node in enumerate(own)}
        names = [f"{b}/{node}" if self.several else node for b, node in own]
        for (b, switch), name in self._domain_switches().items():
            if name not in names[len(own) :]:
                names.append(name)
            number[b, switch] = names.index(name, len(own))
        if not self.several:
            return names, number
        between = self.shared if self.tree is None else self.tree.switches
        place = {name: len(names) + k for k, name in enumerate(between)}
        for (b, box), switch in product(enumerate(self.boxes), self.shared):
            if switch in box.data.shared_switches:
                number[b, switch] = place[switch if self.tree is None else self.tree.leaf_of(b, switch)]
        return names + between, number

    def _ranks(self) -> Iterator[tuple[int, str]]:
        for b, box in enumerate(self.boxes):
            yield from ((b, rank) for rank in box.data.rank_names[: box.ranks])

    def _box_switches(self) -> Iterator[tuple[int, str]]:
        """The boxes' own switches that lead to a rank."""
        behind: dict[tuple[int, int], set[str]] = {}
        for b, box in enumerate(self.boxes):
            kind = (id(box.data), box.ranks)
            if kind not in behind:
                behind[kind] = box.data.behind(box.ranks)
            of_box = (*box.data.switches, *(box.data.box_switches if self.several else ()))
            yield from ((b, switch) for switch in of_box if switch in behind[kind])

    def _domain_switches(self) -> dict[tuple[int, str], str]:
        """The names of the switches of NVLink domains, by box and by what the box calls them."""
        one = len(set(self.domains)) == 1
        return {
            (b, switch): switch if one else f"{switch}.{self.domains[b]}"
            for b, box in enumerate(self.boxes)
            for switch in box.data.domain_switches
        }


@dataclass(frozen=True, eq=False)
class LeafSpine:
    """Leaf and spine switches in the place of those that the boxes share: see :class:`Above`."""

    boxes: Sequence[Box]
    shared: Sequence[str]
    above: Above
    boxes_a_leaf: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the leaf switches of a group of boxes."""
        return tuple(self.shared) if self.above.rails else ("leaf",)

    @property
    def groups(self) -> int:
        """Groups of boxes behind the same leaf switches; the last may have fewer boxes."""
        return -(-len(self.boxes) // self.boxes_a_leaf)

    @property
    def spines(self) -> int:
        """Spine switches: as stated, or as many as the links of all leaf switches need ports."""
        if self.above.spines is not None:
            return self.above.spines
        ports = sum(len(box.ports) for box in self.boxes) / self.above.oversubscription
        return max(1, round(ports / SPINE_PORTS))

    @property
    def switches(self) -> list[str]:
        """All their names: the leaves group after group, then the spines."""
        leaves = [f"{kind}.{group}" for group in range(self.groups) for kind in self.kinds]
        return leaves + [f"spine{k}" for k in range(self.spines)]

    def leaf_of(self, box: int, shared: str) -> str:
        """The leaf switch in the place of the ``shared`` one for this box."""
        return f"{shared if self.above.rails else 'leaf'}.{box // self.boxes_a_leaf}"

    def links(self) -> Iterator[tuple[str, str, MachineLink]]:
        """From leaf to spine (both ways): names and properties."""
        spines = self.spines
        for group in range(self.groups):
            boxes = self.boxes[group * self.boxes_a_leaf : (group + 1) * self.boxes_a_leaf]
            for kind in self.kinds:
                share, delay = self._ports_below(boxes, kind)
                up = share / self.above.oversubscription / spines
                for k in range(spines if share else 0):
                    leaf, spine = f"{kind}.{group}", f"spine{k}"
                    yield leaf, spine, MachineLink(src=leaf, dst=spine, bandwidth=up, latency=delay)

    def _ports_below(self, boxes: Sequence[Box], kind: str) -> tuple[float, float]:
        """What the ports at a leaf switch carry together where its group is full, and their greatest latency."""
        down = [[link for link in box.ports if not self.above.rails or kind in (link.src, link.dst)] for box in boxes]
        rates = [sum(link.bandwidth for link in ports) for ports in down]
        delay = max((link.latency for ports in down for link in ports), default=0.0)
        if len(set(rates)) == 1:
            return self.boxes_a_leaf * rates[0], delay
        return sum(rates) * (self.boxes_a_leaf / len(boxes)), delay
