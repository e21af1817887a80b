"""Instances of the fabric family: a machine, a collective over some of its ranks, and a size in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from synth.arrays import IntArray
from synth.errors import Fault, UnsupportedError
from synth.instance import Instance, Part, Unit
from synth.schedule.collective import ROOTED
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import (
    COLLECTIVES,
    Blocks,
    blocks_of,
    undivided,
)
from synth_models.fabric.problem.box_machine import MachineSpec
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.network_spec import FabricSpec, OwnSpec, built, own_faults
from synth_models.fabric.problem.place_faults import place_faults, rows_of_three, whole
from synth_models.fabric.problem.range_faults import range_faults, rate_faults
from synth_models.fabric.problem.ready import Ready, ready_faults
from synth_models.fabric.problem.scenarios import Scenarios, scenario_faults
from synth_models.fabric.problem.several import (
    MOST_COLLECTIVES,
    SEVERAL,
    AnyCollective,
    Objective,
    OneCollective,
    placed,
    rows_of,
    several_faults,
    together,
)
from synth_models.fabric.problem.switching import Switching, able_to, switching_faults
from synth_models.fabric.problem.traffic import TRAFFIC, HeldBlock, blocks_of_traffic, reach_faults, shape_faults

Node = Annotated[int, Field(ge=0)]
Share = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,17}/[1-9][0-9]{0,17}$")]
MOST_BYTES = 2**48  # 256 TiB: sums of sizes over all blocks fit 64 bits
MANY = 128  # ranks from which on methods that need no search are among the default ones,
STEINER = 16  # ranks up to which trees are packed where switches copy or add
VERY_MANY = 1025  # and on equal boxes those that keep one rank's transfers only
MOST_SHOWN = 8
LEAST_SPAN_S, MOST_SPAN_S = 2.0**14, 1.1e9  # that a clock of several collectives has room for behind all releases
SERIAL = 64  # hops that all of a collective may make one after the other, each on the slowest link


class Failed(Part):
    """What is broken: links as pairs of nodes (all links from the first to the second, one direction), whole nodes, and
    ``reduced``: links of which only a share of the bandwidth is left, ``[from, to, "11/12"]``."""

    links: tuple[tuple[Node, Node], ...] = ()
    nodes: tuple[Node, ...] = ()
    reduced: tuple[tuple[Node, Node, Share], ...] | None = None

    @property
    def anything(self) -> bool:
        """Whether anything has failed."""
        return bool(self.links or self.nodes or self.reduced)

    @property
    def shares(self) -> dict[tuple[int, int], Fraction]:
        """The share of the bandwidth that is left, by the ends of the link."""
        return {(u, v): Fraction(share) for u, v, share in self.reduced or ()}


class FabricInstance(Instance):
    """One collective on one machine, or several; the completion time in seconds is to be least.

    ``ranks`` is the process group (node numbers, in its order; default: every rank that has not failed). Ranks outside
    the group forward nothing unless ``relay`` is true. ``bytes`` counts as in nccl-tests
    (:mod:`synth_models.fabric.problem.blocks`). ``demand`` holds ``[src, dst, bytes]`` for the collective ``demand``,
    whose ``bytes`` is their sum; ``traffic`` likewise blocks with several holders and wanters for the collective
    ``traffic`` (:mod:`synth_models.fabric.problem.traffic`). The collective ``several`` has ``collectives``, whose sum
    is ``bytes``, and an ``objective`` (:mod:`synth_models.fabric.problem.several`). ``ready``: when ranks have their
    own part (:mod:`synth_models.fabric.problem.ready`). ``scenarios``: several such answers, for one plan
    (:mod:`synth_models.fabric.problem.scenarios`).
    """

    family: Literal["fabric"] = "fabric"
    network: FabricSpec
    switching: Switching = Switching()
    collective: AnyCollective = "allgather"
    bytes: Annotated[int, Field(ge=1, le=MOST_BYTES), Unit("bytes")]
    root: Node | None = None
    ranks: Annotated[tuple[Node, ...], Field(min_length=1)] | None = None
    relay: bool = False
    demand: tuple[tuple[Node, Node, Annotated[int, Field(ge=1, le=MOST_BYTES)]], ...] | None = None
    failed: Failed = Failed()
    collectives: Annotated[tuple[OneCollective, ...], Field(min_length=1, max_length=MOST_COLLECTIVES)] | None = None
    objective: Objective | None = None
    ready: Annotated[Ready, Field(min_length=1)] | None = None
    traffic: tuple[HeldBlock, ...] | None = None
    scenarios: Scenarios | None = None

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        return list(_faults(raw))

    @cached_property
    def members(self) -> tuple[int, ...]:
        """Node numbers of the process group, in its order; of several collectives all that are in some group."""
        if self.collectives is not None:
            return tuple(sorted({rank for part in self.parts for rank in part.members}))
        return _members(built(self.network), self.ranks, self.failed.nodes)

    @cached_property
    def operations(self) -> tuple[OneCollective, ...]:
        """What a job moves: the collectives that are listed, or the instance's own."""
        if self.collectives is not None:
            return self.collectives
        return (OneCollective.model_construct(bytes=self.bytes, ready=self.ready),)

    @cached_property
    def parts(self) -> tuple[FabricInstance, ...]:
        """Each of several collectives as if it were alone and released at once; of one collective the instance."""
        if self.collectives is None:
            return (self,)
        shared: dict[str, Any] = {
            key: getattr(self, key) for key in ("source", "network", "switching", "failed", "relay")
        }
        parts = tuple(
            FabricInstance.model_construct(
                format=self.format,
                family="fabric",
                name=f"{self.name[:90]}.{i}",
                **shared,
                **one.own,
            )
            for i, one in enumerate(self.collectives)
        )
        whole = able_to(built(self.network).slowed(self.failed.shares), self.switching)
        ticks = clock.ticks_per_second(whole, self._span_s(parts, whole))
        for part in parts:  # one clock, so that schedules for each can be put together as they are
            part.__dict__["machine"] = replace(part.machine, ticks_per_s=ticks)
        return parts

    def _span_s(self, parts: Sequence[FabricInstance], whole: Machine) -> float:
        """Seconds for which the clock of several collectives has room."""
        rate = float(whole.network.bandwidth.min(initial=np.inf))
        delay = float(whole.network.latency.max(initial=0.0))
        serial = sum(len(one.members) * (one.bytes / rate + len(one.members) * delay) for one in parts) * SERIAL
        release = max(one.release for one in self.collectives or ())
        return min(max(LEAST_SPAN_S, serial), MOST_SPAN_S) + release

    @cached_property
    def on_time(self) -> FabricInstance:
        """The same with every rank ready at moment 0."""
        if self.ready is None and self.scenarios is None:
            return self
        values = {key: getattr(self, key) for key in type(self).model_fields if key not in ("ready", "scenarios")}
        made = FabricInstance.model_construct(**values)
        made.__dict__["machine"] = self.machine  # which may be another than the file's, made in memory
        return made

    @cached_property
    def boxes(self) -> list[tuple[int, ...]]:
        """The members by box, in the order of the group; where the network states no boxes every rank alone. Boxes of
        one NVLink domain are one where there are several domains: what joins them is as quick as what is in them."""
        box, size = self._box_of_rank, self._domain if self.hosts > 1 else 1
        found: dict[int, list[int]] = {}
        for rank in self.members:
            found.setdefault(box[rank] // size if rank in box else -1 - rank, []).append(rank)
        return [tuple(box) for box in found.values()]

    @cached_property
    def hosts(self) -> int:
        """What NCCL calls nodes: NVLink domains that have members, whose topologies it fuses (src/graph/topo.cc); 1
        where the network states no boxes."""
        box = self._box_of_rank
        there = {box[rank] // self._domain if rank in box else -1 - rank for rank in self.members}
        return len(there) if box else 1

    @property
    def _domain(self) -> int:
        """Boxes of one NVLink domain."""
        if isinstance(self.network, MachineSpec):
            return self.network.data.domain
        return (self.network.domain or 1) if isinstance(self.network, OwnSpec) else 1

    @property
    def numbering(self) -> list[tuple[int, str, str, str]]:
        """A row a node of the whole machine: number, name, rank or switch, and the box of a rank in one."""
        machine, box = built(self.network), self._box_of_rank
        words = ["switch" if switch else "rank" for switch in machine.is_switch.tolist()]
        pairs = enumerate(zip(machine.names, words, strict=True))
        return [(v, name, word, str(box.get(v, ""))) for v, (name, word) in pairs]

    @cached_property
    def _box_of_rank(self) -> dict[int, int]:
        """The box of every rank that is in one."""
        if isinstance(self.network, MachineSpec):
            return dict(enumerate(np.repeat(np.arange(self.network.boxes), self.network.box_sizes).tolist()))
        stated = self.network.boxes if isinstance(self.network, OwnSpec) else None
        return {rank: number for number, ranks in enumerate(stated or ()) for rank in ranks}

    @cached_property
    def machine(self) -> Machine:
        """What can be used: without failed links and nodes, and without ranks that forward nothing. Node numbers are
        those of the file; links are renumbered in the file's order."""
        return able_to(_usable(built(self.network), self.failed, self.members, self.relay), self.switching)

    @cached_property
    def blocks(self) -> Blocks:
        """What has to move. Raises :class:`UnsupportedError` for several collectives: each of ``parts`` has its own."""
        if self.collectives is not None:
            raise UnsupportedError("this takes one collective; the instance has several")
        if self.traffic is not None:
            return blocks_of_traffic(self.traffic)
        return blocks_of(self.collective, self.members, self.bytes, self.the_root, self.demand or ())

    @cached_property
    def all_blocks(self) -> tuple[Blocks, IntArray]:
        """What all collectives have to move, and the collective of every block."""
        return together([part.blocks for part in self.parts])

    @property
    def special_switches(self) -> bool:
        """Whether some switch adds, or copies where not all do: programs with one rule for all switches say so."""
        able = self.machine.abilities
        adds = bool(able.adds.any() or (self.switching.adds and self.machine.is_switch.any()))
        return adds or bool(able.copies.any() and not self.switching.multicast)

    @property
    def the_root(self) -> int | None:
        """The root of a rooted collective (default: the first of the group), None for the others."""
        if self.collective not in ROOTED:
            return None
        return self.members[0] if self.root is None else self.root


def suited(instance: FabricInstance, method: str) -> bool:
    """Whether a default method fits the collective and the machine."""
    return unsuited(instance, method) is None


def unsuited(instance: FabricInstance, method: str) -> str | None:
    """What of the collective or the machine a default method is not for, None where it fits. ``symmetric`` is for
    :data:`MANY` ranks on a grid, or :data:`VERY_MANY` in equal boxes."""
    from synth_models.fabric.problem.reach import OF_SEVERAL, knows

    if instance.collectives is not None:
        parts = [part.collective for part in instance.parts]
        fits = method in OF_SEVERAL and (method in OF_SEVERAL[:3] or all(knows(method, one) for one in parts))
        return None if fits else "one collective at a time"
    if not knows(method, instance.collective):
        return "for several collectives" if method in OF_SEVERAL[1:3] else f"no {instance.collective}"
    many, switches = len(instance.members) >= MANY, bool(instance.machine.is_switch.any())
    able, copied = instance.machine.abilities, instance.collective == "allgather"
    lacks: dict[str, tuple[Callable[[], Any], str]] = {
        "hierarchical": (lambda: not several_boxes(instance) and not (many and switches), "needs several boxes"),
        "symmetric": (lambda: not _alike(instance), "for many ranks that are alike"),
        "bfb": (lambda: switches, "takes no switches"),
        **dict.fromkeys(("nvls", "sharp"), (lambda: not able.adds.any(), "needs switches that add")),
        "in_network": (lambda: not (able.copies if copied else able.adds).any(), "needs switches that copy or add"),
        "steiner": (
            lambda: not able.any or len(instance.members) > STEINER,
            "for few ranks behind switches that copy or add",
        ),
        "two_level": (lambda: not several_boxes(instance, equal=True), "needs several equal boxes"),
    }
    missing, words = lacks.get(method, (lambda: False, ""))
    return words if missing() else None


def _alike(instance: FabricInstance) -> bool:
    """Whether there are many ranks on a grid, or so many in equal boxes that one rank's transfers have to do."""
    if not instance.machine.is_switch.any():
        return len(instance.members) >= MANY and instance.machine.network.grid is not None
    to_and_from_all = instance.collective in ("allgather", "reduce_scatter", "allreduce")
    return to_and_from_all and len(instance.members) >= VERY_MANY and several_boxes(instance, equal=True)


def several_boxes(instance: FabricInstance, equal: bool = False) -> bool:
    """Whether there are several boxes, of several ranks each or some, and if so wanted of equally many."""
    sizes = {len(box) for box in instance.boxes}
    return len(instance.boxes) > 1 and max(sizes) > 1 and not (equal and len(sizes) > 1)


def _members(machine: Machine, ranks: tuple[int, ...] | None, failed: tuple[int, ...]) -> tuple[int, ...]:
    if ranks is not None:
        return tuple(ranks)
    return tuple(int(v) for v in machine.ranks if int(v) not in set(failed))


def _usable(machine: Machine, failed: Failed, members: tuple[int, ...], relay: bool) -> Machine:
    gone = set(failed.nodes)
    if not relay:
        gone |= {int(v) for v in machine.ranks} - set(members)
    pairs = set(failed.links)
    net = machine.network
    links = [e for e in range(net.links) if (int(net.src[e]), int(net.dst[e])) in pairs] if pairs else []
    return machine.slowed(failed.shares).without(links, gone)


def _faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """Everything that concerns several fields; parts of the wrong type are pydantic's to report."""
    network = raw.get("network")
    if not isinstance(network, dict):
        return
    own = own_faults(network) if network.get("kind") == "links" else []
    yield from own
    yield from several_faults(raw)
    yield from _size_faults(raw)
    yield from shape_faults(raw)
    yield from switching_faults(raw.get("switching"), network)
    if own:
        return
    if raw.get("collective") == SEVERAL:
        yield from _faults_of_parts(raw)
        return
    try:
        machine = built(_reader().validate_json(_json(network), strict=True))
    except ValidationError:
        return  # reported field by field elsewhere
    except (ValueError, KeyError) as error:
        yield Fault("network", str(error))
        return
    strange = list(range_faults(machine)) + list(rate_faults(raw.get("switching")))
    yield from strange
    if strange:
        return
    placed = list(place_faults(raw, machine))
    yield from placed
    if placed or any(_wrong_type(raw, key) for key in ("ranks", "demand", "failed", "root", "traffic")):
        return
    failed = Failed.model_validate(raw.get("failed") or {})
    ranks = raw.get("ranks")
    members = _members(machine, tuple(ranks) if ranks is not None else None, failed.nodes)
    yield from ready_faults(raw, members)
    yield from scenario_faults(raw, members)
    usable = _usable(machine, failed, members, raw.get("relay") is True)
    yield from range_faults(usable) if failed.reduced else ()
    yield from _division_faults(raw, members)
    yield from _partition_faults(raw, usable, members)


def _faults_of_parts(raw: dict[str, Any]) -> Iterator[Fault]:
    """What is wrong with each of several collectives, what they share only once."""
    told: set[tuple[str, str]] = set()
    for number, row in rows_of(raw):
        for own in _faults(row):
            fault = placed(number, own)
            if (fault.path, fault.message) not in told:
                told.add((fault.path, fault.message))
                yield fault
        group = None if told or row.get("collective") in ("demand", TRAFFIC) else _group_of(row)
        if group is not None and len(group) < 2:
            yield Fault(f"collectives[{number}].ranks", "has one rank: nothing would move")


def _group_of(row: dict[str, Any]) -> tuple[int, ...] | None:
    """The ranks of one of several collectives; None where a field that says so is of the wrong type."""
    if any(_wrong_type(row, key) for key in ("network", "ranks", "failed")):
        return None  # reported field by field elsewhere
    if row.get("ranks") is not None:
        return tuple(row["ranks"])
    machine = built(_reader().validate_json(_json(row["network"]), strict=True))
    return _members(machine, None, Failed.model_validate(row.get("failed") or {}).nodes)


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


@cache
def _reader(key: str = "network") -> TypeAdapter[Any]:
    """What reads one field alone; pydantic takes a millisecond to make it."""
    return TypeAdapter(FabricSpec if key == "network" else FabricInstance.model_fields[key].rebuild_annotation())


def _wrong_type(raw: dict[str, Any], key: str) -> bool:
    default = FabricInstance.model_fields[key].default
    try:
        _reader(key).validate_json(_json(raw.get(key, default)), strict=True)
    except (ValidationError, TypeError):
        return key in raw
    return False


def _size_faults(raw: dict[str, Any]) -> Iterator[Fault]:
    collective, demand, size = raw.get("collective", "allgather"), raw.get("demand"), raw.get("bytes")
    if collective not in COLLECTIVES:
        return
    if collective == "demand" and demand is None:
        yield Fault("demand", "is missing: the collective demand needs rows [src, dst, bytes]")
    if collective != "demand" and demand is not None:
        yield Fault("demand", f"has no meaning for {collective}")
    if collective == "demand" and isinstance(demand, (list, tuple)):
        yield from _sum_faults(demand, size)
    if collective not in ROOTED and raw.get("root") is not None:
        yield Fault("root", f"has no meaning for {collective}", raw["root"], True)


def _sum_faults(demand: Sequence[Any], size: Any) -> Iterator[Fault]:
    if not demand:
        yield Fault("demand", "has no rows")
    amounts = [amount for _, _, _, amount in rows_of_three(demand) if whole(amount)]
    if demand and len(amounts) == len(demand) and whole(size) and sum(amounts) != size:
        yield Fault("bytes", f"must be the demand's sum, {sum(amounts)}", size, True)


def _division_faults(raw: dict[str, Any], members: tuple[int, ...]) -> Iterator[Fault]:
    collective, size = raw.get("collective", "allgather"), raw.get("bytes")
    if not members:
        yield Fault("ranks", "no rank is left")
    elif isinstance(size, int) and whole(size) and (words := undivided(str(collective), size, len(members))):
        yield Fault("bytes", words, size, True)


def _partition_faults(raw: dict[str, Any], machine: Machine, members: tuple[int, ...]) -> Iterator[Fault]:
    """Members that cannot reach each other, the parts by name."""
    collective = raw.get("collective", "allgather")
    if len(members) < 2 or collective not in COLLECTIVES:
        return
    if collective in ("demand", TRAFFIC):
        pairs = [{"holders": [u], "wanters": [v]} for u, v, _ in raw.get("demand") or ()]
        yield from reach_faults(raw.get("traffic") or pairs, machine, collective)
        return
    if collective in ROOTED:
        root = members[0] if raw.get("root") is None else raw["root"]
        yield from _root_faults(collective, root, machine, members)
        return
    parts = machine.parts_of(members)
    if len(parts) > 1:
        words = "; ".join(_listed(part) for part in parts[:MOST_SHOWN])
        more = f"; … {len(parts) - MOST_SHOWN} more" if len(parts) > MOST_SHOWN else ""
        yield Fault("network", f"parts the ranks into {len(parts)} that do not all reach each other: {words}{more}")


def _root_faults(collective: str, root: int, machine: Machine, members: tuple[int, ...]) -> Iterator[Fault]:
    outwards = collective in ("broadcast", "scatter")
    reach = (machine if outwards else machine.reversed()).reached_from(root)
    cut = [v for v in members if not reach[v]]
    if cut:
        verb = "cannot be reached from" if outwards else "cannot reach"
        yield Fault("network", f"is parted: ranks {_listed(cut)} {verb} the root {root}")


def _listed(nodes: list[int]) -> str:
    more = f", … ({len(nodes)})" if len(nodes) > 2 * MOST_SHOWN else ""
    return "{" + ", ".join(map(str, nodes[: 2 * MOST_SHOWN])) + more + "}"


def size(instance: FabricInstance) -> int:
    """Return the number of ranks that take part."""
    return len(instance.members)
