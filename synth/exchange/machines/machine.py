"""The one intermediate form of all topology formats: nodes, links, and what the file leaves open.

Nothing here is invented: a bandwidth or latency that the file does not state is None, what it does not say at all is
told in ``unknown``, what a reader takes for granted in ``assumed``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from synth.errors import Fault, InputError
from synth.network.links_table import Position, too_large
from synth.text.visible import visible

NET = "NET"  # the class of ports, and of the links that they become
Switching = Literal["cut_through", "store_and_forward"]


@dataclass(frozen=True)
class Link:
    """One directed link of a class (``NV``, ``PCI``, …); ``bandwidth`` in bytes/s, ``latency`` in seconds, None where
    the file does not say. ``lanes`` links are bonded: a bandwidth given for the class is that of one."""

    src: int
    dst: int
    kind: str
    bandwidth: float | None = None
    latency: float | None = None
    group: str | None = None
    lanes: int = 1


@dataclass(frozen=True)
class Port:
    """A way out of the box (of a NIC), whose other end the file does not show."""

    node: int
    name: str
    bandwidth: float | None = None
    latency: float | None = None


@dataclass(frozen=True)
class Machine:
    """A machine as a file shows it.

    ``names``: what the nodes are called, shape (nodes,), every name once. ``switches``: node numbers that hold no data;
    all others are ranks. ``format`` and ``source`` say what was read, in words. ``switching``: how switches forward.
    ``unknown`` is what the file does not say, ``assumed`` what the reader takes for granted, ``given`` what a person
    supplied, ``left_out`` what of the file is not in the machine. ``about``: the classes of links that a text of the
    first two is about, where it is about some alone. ``boxes``: the ranks of every box, none where the file knows
    none. ``box``: the one box, with its ports and what leads to them, that this machine is made of. ``places``: where
    nodes are drawn (x, y), by name.
    """

    name: str
    format: str
    source: str
    names: tuple[str, ...]
    switches: frozenset[int]
    links: tuple[Link, ...]
    ports: tuple[Port, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    switching: Switching = "cut_through"
    given: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    boxes: tuple[tuple[int, ...], ...] = ()
    box: Machine | None = None
    places: Mapping[str, Position] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """Ranks and switches."""
        return len(self.names)

    @property
    def ranks(self) -> list[int]:
        """Node numbers of the ranks, ascending."""
        return [v for v in range(self.nodes) if v not in self.switches]

    @property
    def kinds(self) -> list[str]:
        """Classes of links, in the order of their first."""
        return list(dict.fromkeys(link.kind for link in self.links))

    @property
    def classes(self) -> list[str]:
        """The same, and the class of its ports."""
        return list(dict.fromkeys([*self.kinds, *([NET] if self.ports else [])]))


@dataclass(frozen=True)
class Hints:
    """What a person says of a file that leaves it open.

    ``switches``: names or numbers of nodes that are switches. ``nvlinks``: whether NVLinks join GPUs directly or a
    switch does. ``chunk_bytes``, ``time_unit_s``: what TACCL's relative numbers count in.
    """

    switches: tuple[str, ...] = ()
    nvlinks: Literal["direct", "switch"] | None = None
    chunk_bytes: int | None = None
    time_unit_s: float | None = None


NO_HINTS = Hints()


@dataclass
class Builder:
    """A machine as it is put together; nodes are numbered in the order in which they are added."""

    names: list[str] = field(default_factory=list)
    switches: set[int] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    about: dict[str, tuple[str, ...]] = field(default_factory=dict)
    boxes: list[tuple[int, ...]] = field(default_factory=list)

    def rank(self, name: str) -> int:
        """A rank's number."""
        return self._node(name)

    def switch(self, name: str) -> int:
        """A switch's number."""
        number = self._node(name)
        self.switches.add(number)
        return number

    def link(
        self,
        src: int,
        dst: int,
        kind: str,
        bandwidth: float | None = None,
        latency: float | None = None,
        *,
        lanes: int = 1,
        both: bool = True,
    ) -> None:
        """A link, and the one back."""
        for tail, head in ((src, dst), (dst, src))[: 2 if both else 1]:
            self.add(Link(tail, head, kind, bandwidth, latency, lanes=lanes))

    def add(self, link: Link) -> None:
        """One link."""
        group = None if link.group is None else visible(link.group)
        self.links.append(replace(link, kind=visible(link.kind), group=group))

    def machine(self, name: str, format_name: str, source: str, switching: Switching = "cut_through") -> Machine:
        """What was put together. Raises :class:`InputError` for more than is supported, and for none."""
        faults = []
        if len(self.switches) == len(self.names):
            faults.append(Fault("", "holds no rank"))
        if not self.links:
            faults.append(Fault("", "holds no link"))
        faults += too_large(len(self.names), len(self.links))
        if faults:
            raise InputError(faults)
        return Machine(
            name, format_name, source, tuple(self.names), frozenset(self.switches), tuple(self.links),
            tuple(self.ports), tuple(self.unknown), tuple(self.assumed), switching, about=self.about,
            boxes=tuple(self.boxes),
        )  # fmt: skip

    def _node(self, name: str) -> int:
        self.names.append(visible(name))
        return len(self.names) - 1


def listed(words: Iterable[object], most: int = 6) -> str:
    """The first few, and how many there are."""
    every = [str(word) for word in words]
    return ", ".join(every[:most]) + (f", … ({len(every)})" if len(every) > most else "")
