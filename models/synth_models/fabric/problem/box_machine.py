"""A machine by name: boxes that are alike, and the switches that join them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import Annotated, Literal

from pydantic import Field

from synth.instance import Part
from synth.network.spec import Bandwidth, Latency
from synth_models.fabric.problem.abilities import Ability
from synth_models.fabric.problem.link_rows import LinkRows
from synth_models.fabric.problem.machine import Machine

Count = Annotated[int, Field(ge=1, le=100_000)]
SPINE_PORTS = 64  # NVIDIA QM9700, DGX SuperPOD reference architecture: 16 spines for 128 boxes of 8 ports, 8 for 64


class MachineLink(Part):
    """One line of a machine file; ``both`` makes the link back too."""

    src: str
    dst: str
    bandwidth: Bandwidth
    latency: Latency = 0.0
    group: str | None = None
    both: bool = True


class MachineFile(Part):
    """A machine as data: one box, and what joins several.

    ``gpus`` ranks a box, named ``gpu0``…; ``switches`` of the box by name; ``links`` within a box. With two boxes or
    more, the ``shared_switches`` exist once and every box has the ``uplinks`` too; ``box_switches`` are switches of a
    box that exist only then (NICs). ``joins`` are links from a node of one box to a node of the next (``ring``) or of
    every other box (``all``). ``abilities``: of switches that copy or add, by name.
    """

    name: str
    title: str
    source: str = Field(description="where bandwidths and latencies come from")
    assumed: tuple[str, ...] = Field((), description="what the source does not say")
    not_modelled: tuple[str, ...] = Field((), description="what real machines do beyond this file")
    gpus: Count
    most_boxes: Count = 4096
    switching: Literal["cut_through", "store_and_forward"] = "cut_through"
    switches: tuple[str, ...] = ()
    links: tuple[MachineLink, ...]
    shared_switches: tuple[str, ...] = ()
    box_switches: tuple[str, ...] = ()
    uplinks: tuple[MachineLink, ...] = ()
    joins: tuple[MachineLink, ...] = ()
    abilities: Mapping[str, Ability] = Field(default_factory=dict)

    def behind(self, gpus: int) -> set[str]:
        """The switches of a box that are joined to one of its first ``gpus`` ranks, over other switches or not."""
        own = {*self.switches, *self.box_switches}
        if gpus == self.gpus:
            return own
        there = {f"gpu{g}" for g in range(gpus)}
        pairs = [(link.src, link.dst) for link in (*self.links, *self.uplinks)]
        pairs += [(dst, src) for src, dst in pairs]
        stack = list(there)
        while stack:
            node = stack.pop()
            near = {dst for src, dst in pairs if src == node and dst in own} - there
            there |= near
            stack += near
        return there & own


def machine_names() -> list[str]:
    """The machines that come with the package."""
    folder = resources.files("synth_models.fabric") / "machines"
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


@lru_cache(maxsize=64)
def machine_file(name: str) -> MachineFile:
    """The machine of that name; its file may be ``like`` another but for what it says itself.

    Raises ``ValueError`` naming the known ones."""
    if name not in machine_names():
        raise ValueError(f"unknown machine {name!r}; one of {', '.join(machine_names())}")
    text = (resources.files("synth_models.fabric") / "machines" / f"{name}.json").read_text(encoding="utf-8")
    raw = json.loads(text)
    if "like" in raw:
        return MachineFile(**machine_file(raw.pop("like")).model_dump() | raw)
    return MachineFile.model_validate(raw)


def caution(name: str) -> str | None:
    """What to say beside a bound of the machine of that name: what real ones do beyond its file; None for nothing."""
    more = machine_file(name).not_modelled
    return f"{name} does not model {', '.join(more)}: hardware with it may be below this bound" if more else None


class MachineSpec(Part):
    """``boxes`` boxes of a named machine. Ranks come first, box after box, then the switches.

    ``gpus``: how many ranks each box has, where not all have those of the machine's file; the first ones are there, and
    of a box's switches those that lead to one of them. What the boxes share is as for full boxes.

    With ``leaf`` the switches that the machine's file lets all boxes share become a fat tree. Every ``leaf`` boxes have
    leaf switches of their own: one for each of the file's shared switches (``rails``, the default: rail-optimised), or
    one for all their ports (``rails`` false: a plain fat tree). Every leaf switch is joined to each of ``spines`` spine
    switches (default: as many as switches of :data:`SPINE_PORTS` ports take), and its links to them carry together what
    the ports of ``leaf`` boxes do, divided by ``oversubscription`` (default 1).
    """

    kind: Literal["machine"]
    name: str
    boxes: Count = 1
    gpus: tuple[Count, ...] | None = None
    leaf: Count | None = None
    rails: bool | None = None
    oversubscription: Annotated[float, Field(ge=1, le=1024)] | None = None
    spines: Annotated[int, Field(ge=1, le=4096)] | None = None

    @property
    def variant_words(self) -> list[str]:
        """What is not as in the machine's file, in words for names: the GPUs of boxes, the fat tree between them."""
        words = []
        if self.gpus is not None:
            words.append("gpus" + "-".join(map(str, self.gpus if len(set(self.gpus)) > 1 else self.gpus[:1])))
        if self.leaf is None:
            return words
        words.append(f"leaf{self.leaf}" if self.rails is not False else f"plain{self.leaf}")
        words += [f"spines{self.spines}"] if self.spines is not None else []
        ratio = self.oversubscription or 1
        return words + ([f"over{ratio:g}"] if ratio != 1 else [])

    @property
    def box_sizes(self) -> list[int]:
        """Ranks of every box. Raises ``ValueError`` where ``gpus`` does not fit the boxes or the machine."""
        most = machine_file(self.name).gpus
        if self.gpus is None:
            return [most] * self.boxes
        if len(self.gpus) != self.boxes:
            raise ValueError(f"gpus: {len(self.gpus)} numbers for boxes={self.boxes}")
        if max(self.gpus) > most:
            raise ValueError(f"gpus: a box of {self.name} has {most} at most, not {max(self.gpus)}")
        return list(self.gpus)

    def build(self) -> Machine:
        data = machine_file(self.name)
        if self.boxes > data.most_boxes:
            raise ValueError(f"machine {self.name} is known for boxes={data.most_boxes} at most")
        tree = self._tree(data)
        names, number = self._nodes(data, tree)
        switches = set(range(sum(self.box_sizes), len(names)))
        rows = LinkRows()
        self._add_boxes(rows, data, number)
        rows.abilities = {node: data.abilities[name] for (_, name), node in number.items() if name in data.abilities}
        if tree is not None:
            place = {name: node for node, name in enumerate(names)}
            for leaf, spine, link in tree.links():
                rows.add(place[leaf], place[spine], link, None, True)
        return rows.machine(names, switches, self.name)

    def _add_boxes(self, rows: LinkRows, data: MachineFile, number: dict[tuple[int, str], int]) -> None:
        """Add the links of the boxes, up from them, and from one to the next, between nodes that have a number."""
        for b in range(self.boxes):
            for link in (*data.links, *(data.uplinks if self.boxes > 1 else ())):
                group = None if link.group is None else f"{b}/{link.group}"
                if (b, link.src) in number and (b, link.dst) in number:
                    rows.add(number[b, link.src], number[b, link.dst], link, group, link.both)
        for link in data.joins if self.boxes > 1 else ():
            for b in range(self.boxes):
                after = (b + 1) % self.boxes
                there = (b, link.src) in number and (after, link.dst) in number
                if there and (self.boxes > 2 or b == 0 or not link.both):
                    rows.add(number[b, link.src], number[after, link.dst], link, None, link.both)

    def size(self) -> tuple[int, int]:
        """About how many nodes and links it has, without building it."""
        data = machine_file(self.name)
        nodes = self.boxes * (data.gpus + len(data.switches) + len(data.box_switches))
        links = self.boxes * 2 * (len(data.links) + len(data.uplinks) + len(data.joins))
        tree = self._tree(data)
        if tree is None:
            return nodes, links
        leaves = tree.groups * len(tree.kinds)
        return nodes + leaves + tree.spines, links + 2 * leaves * tree.spines

    def _tree(self, data: MachineFile) -> LeafSpine | None:
        """The switches between boxes as a fat tree, None where they are those of the file. Raises ``ValueError``."""
        if self.leaf is None:
            given = [key for key in ("rails", "oversubscription", "spines") if getattr(self, key) is not None]
            if given:
                raise ValueError(f"{given[0]} has no meaning without leaf, the number of boxes a leaf switch joins")
            return None
        if not data.shared_switches:
            raise ValueError(f"leaf: machine {self.name} has no switches between its boxes")
        if self.boxes < 2:
            raise ValueError("leaf has no meaning for one box")
        return LeafSpine(data, self.boxes, self.leaf, self.rails is not False, self.oversubscription or 1, self.spines)

    def _nodes(self, data: MachineFile, tree: LeafSpine | None) -> tuple[list[str], dict[tuple[int, str], int]]:
        """The names of all nodes, and the number of a box's node by its name there: ranks, then every box's switches,
        then those that all boxes share (or a fat tree's)."""
        boxes, several = range(self.boxes), self.boxes > 1
        of_each_box = [*data.switches, *(data.box_switches if several else ())]
        sizes = self.box_sizes
        own = [(b, f"gpu{g}") for b in boxes for g in range(sizes[b])]
        behind = {size: data.behind(size) for size in set(sizes)}
        own += [(b, switch) for b in boxes for switch in of_each_box if switch in behind[sizes[b]]]
        number = {node: place for place, node in enumerate(own)}
        names = [f"{b}/{node}" if several else node for b, node in own]
        shared = tuple(data.shared_switches) if several else ()
        between = list(shared) if tree is None else tree.switches
        place = {name: len(names) + k for k, name in enumerate(between)}
        for b, switch in product(boxes, shared):
            number[b, switch] = place[switch if tree is None else tree.leaf_of(b, switch)]
        return names + between, number


@dataclass(frozen=True)
class LeafSpine:
    """Leaf and spine switches in the place of those that the boxes of a machine share: see :class:`MachineSpec`."""

    data: MachineFile
    boxes: int
    boxes_a_leaf: int
    rails: bool
    oversubscription: float
    stated_spines: int | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the leaf switches of a group of boxes."""
        return self.data.shared_switches if self.rails else ("leaf",)

    @property
    def groups(self) -> int:
        """Groups of boxes behind the same leaf switches; the last may have fewer boxes."""
        return -(-self.boxes // self.boxes_a_leaf)

    @property
    def spines(self) -> int:
        """Spine switches: as stated, or as many as the links of all leaf switches need ports."""
        if self.stated_spines is not None:
            return self.stated_spines
        ports = self.boxes * len(self._ports()) / self.oversubscription
        return max(1, round(ports / SPINE_PORTS))

    @property
    def switches(self) -> list[str]:
        """All their names: the leaves group after group, then the spines."""
        leaves = [f"{kind}.{group}" for group in range(self.groups) for kind in self.kinds]
        return leaves + [f"spine{k}" for k in range(self.spines)]

    def leaf_of(self, box: int, shared: str) -> str:
        """The leaf switch in the place of the file's ``shared`` one for this box."""
        return f"{shared if self.rails else 'leaf'}.{box // self.boxes_a_leaf}"

    def links(self) -> Iterator[tuple[str, str, MachineLink]]:
        """From leaf to spine (both ways): names and properties."""
        for group in range(self.groups):
            for kind in self.kinds:
                down = [link for link in self._ports() if not self.rails or kind in (link.src, link.dst)]
                share = self.boxes_a_leaf * sum(link.bandwidth for link in down)
                up = share / self.oversubscription / self.spines
                delay = max(link.latency for link in down)
                for k in range(self.spines):
                    leaf, spine = f"{kind}.{group}", f"spine{k}"
                    yield leaf, spine, MachineLink(src=leaf, dst=spine, bandwidth=up, latency=delay)

    def _ports(self) -> list[MachineLink]:
        """The links of one box to shared switches, one for both directions."""
        shared = set(self.data.shared_switches)
        return [link for link in self.data.uplinks if link.dst in shared or (link.both and link.src in shared)]
