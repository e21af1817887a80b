"""Boxes as data: what one box holds, what leads out of it, and the classes of its links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from synth.instance import Part
from synth.network.spec import Bandwidth, Latency
from synth_models.fabric.problem.abilities import Ability
from synth_models.fabric.problem.link_classes import Stated, What, changed

Count = Annotated[int, Field(ge=1, le=100_000)]
NIC = "nic"  # the class of links that leave a box and name none


class MachineLink(Part):
    """One line of a machine file; ``both`` makes the link back too; ``kind`` is its class (default: by its place)."""

    src: str
    dst: str
    bandwidth: Bandwidth
    latency: Latency = 0.0
    group: str | None = None
    both: bool = True
    kind: str | None = None


class MachineFile(Part):
    """A machine as data: one box, and what joins several.

    ``gpus`` ranks a box, named ``gpu0``… or as ``ranks`` says; ``switches`` of the box by name; ``links`` within a box,
    of the class ``inner`` unless they say theirs. ``domain`` boxes are joined by ``domain_switches`` (one NVLink domain
    over several boxes), which ``links`` lead to. With two boxes or more, the ``shared_switches`` exist once and every
    box has the ``uplinks`` too, of the class ``nic``; ``box_switches`` are switches of a box that exist only then
    (NICs). ``abilities``: of switches that copy or add, by name.
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
    abilities: Mapping[str, Ability] = Field(default_factory=dict)
    inner: str = "nvlink"
    ranks: tuple[str, ...] | None = None
    domain: Count = 1
    domain_switches: tuple[str, ...] = ()

    @property
    def rank_names(self) -> tuple[str, ...]:
        """What the ranks of a box are called."""
        return self.ranks or tuple(f"gpu{g}" for g in range(self.gpus))

    def stated(self, what: What) -> list[Stated]:
        """The numbers of ``links``, then of ``uplinks``, by class."""
        places = ((self.links, self.inner), (self.uplinks, NIC))
        return [Stated(link.kind or usual, getattr(link, what)) for links, usual in places for link in links]

    def with_numbers(
        self, what: What, asked: Mapping[str, float], called: Mapping[str, str] | None = None
    ) -> tuple[MachineFile, list[str]]:
        """The machine with other bandwidths or latencies by class, and what that replaced, in words. Raises
        ``ValueError`` for a class that is not there."""
        if not asked:
            return self, []
        found, notes = changed(self.stated(what), asked, what, called or {word: word for word in asked})
        values = iter(found)
        own = {
            key: tuple(MachineLink(**dict(link) | {what: next(values)}) for link in getattr(self, key))
            for key in ("links", "uplinks")
        }
        return MachineFile(**dict(self) | own), notes

    def behind(self, gpus: int) -> set[str]:
        """The switches of a box that are joined to one of its first ``gpus`` ranks, over other switches or not."""
        own = {*self.switches, *self.box_switches}
        if gpus == self.gpus:
            return own
        there = set(self.rank_names[:gpus])
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
