"""``synth make fabric``: a machine by name, by shape or link by link, and a collective on it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, InstanceOf

from synth.errors import Fault, InputError, one_of
from synth.exchange.machines.completion import by_class, missing
from synth.exchange.machines.file import as_raw
from synth.exchange.machines.machine import Machine as ReadMachine
from synth.instance import Part
from synth.making import Count, Flag, Listed, Rate, Seconds, Size
from synth.network.keys import LINKS_HELP, Links, NetworkKeys, table_of_links
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY
from synth.records.built_network import table_of_record
from synth.text import amounts
from synth.text.input_file import InputFile
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import traffic_table
from synth_models.fabric.problem.blocks import rounded_size
from synth_models.fabric.problem.box_data import machine_names
from synth_models.fabric.problem.box_machine import MachineSpec
from synth_models.fabric.problem.described_machine import (
    CLASSES,
    OF_BOXES,
    Expanded,
    Mixture,
    asked_of,
    expanded,
    mixture_of,
    mode_of,
    name_of,
    source_of,
    unknown_classes,
)
from synth_models.fabric.problem.failures import failures, in_words
from synth_models.fabric.problem.file_faults import guarded, with_source
from synth_models.fabric.problem.instance_name import PLAIN, instance_name
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.named_faults import missing_faults, named_faults
from synth_models.fabric.problem.network_spec import SHAPES, OwnSpec, built
from synth_models.fabric.problem.node_words import node_meant, nodes_meant
from synth_models.fabric.problem.place_faults import Places
from synth_models.fabric.problem.ready_keys import named, number_or_file, put_together
from synth_models.fabric.problem.reshard_keys import FILES, RESHARD, ReshardKeys, reshard_rows
from synth_models.fabric.problem.several import AnyCollective, Objective
from synth_models.fabric.problem.tables import collective_rows, of_line
from synth_models.fabric.problem.traffic import TRAFFIC

_RATES = tuple(key for word in CLASSES for key in (word, f"{word}_latency"))
_ONLY_WITH = dict.fromkeys(("multicast", "streams", "add_rate"), "cut_through")
_ONLY_WITH |= dict.fromkeys(("buffer", "copies"), "store_and_forward")


def _raw_machine(value: Any) -> Any:
    """What the readers of topology formats return, as a machine file holds it; a path as the file it names."""
    if isinstance(value, str) and value not in machine_names():
        mixture = mixture_of(value)
        return mixture or (InputFile(value) if value.endswith(".json") or "/" in value else value)
    if not isinstance(value, ReadMachine):
        return value
    unknown = missing(value)
    if unknown:
        raise ValueError("; ".join(map(str, unknown)))
    return as_raw(value)


def _gpus(value: Any) -> Any:
    """``4`` or ``4+6`` as numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[0-9]{1,6}(\+[0-9]{1,6})*", value):
        raise ValueError("must be GPUs of a box such as 4, or of every box such as 4+6")
    return tuple(map(int, value.split("+")))


def _as_word(value: Any) -> Any:
    """A node's number or name as text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _number(read: Callable[[str], float]) -> BeforeValidator:
    """``25GB/s``, or by class of link ``NV=25GB/s,PIX=12GB/s``."""

    def number(value: Any) -> Any:
        if isinstance(value, str):
            found = by_class(value, read)
            return found[""] if list(found) == [""] else found
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return read(str(value))
        return value

    return BeforeValidator(number)


def _of(form: str) -> Any:
    """A number whose form the help names."""
    return Field(json_schema_extra={"format": form})


ByClass = dict[str, float]
_SLOWEST = "the slowest, others in proportion; one direction"


class FabricKeys(ReshardKeys):
    """The machine, the collective and its size.

    A ``failed`` file holds lines ``link A B`` (all links between A and B, both directions), ``link A -> B`` (one
    direction), ``link A B 11/12`` (that share of the bandwidth is left), ``node A``; nodes by number or by name
    (``0/gpu3``, ``ib0``). A ``demand`` file is a CSV file with the header ``src,dst,bytes``; nodes likewise, bytes also
    with a unit (``64KB``); or with the header ``bytes,holders,wanters,mode``, a block of several holders and wanters a
    row, or these as a JSON list of tables. A ``collectives`` file is a CSV file, too: a collective a row.
    """

    KINDS: ClassVar[Mapping[str, type[Part]]] = {**SHAPES, "links": OwnSpec}
    machine_key: ClassVar[str | None] = "machine"
    OF_SHAPE: ClassVar[tuple[str, ...]] = (
        *(key for key in NetworkKeys.OF_SHAPE if key != "rings"),
        *("layers", "leaves", "hosts", "spines", "groups", "routers", "uplink_bandwidth", "global_bandwidth"),
    )
    OF_NETWORK: ClassVar[tuple[str, ...]] = (*OF_SHAPE, "bandwidth", "latency")

    examples = (
        "machine=dgx-a100 boxes=2 collective=allgather bytes=1GiB",
        "machine=dgx-h100 gpus=4+6 collective=allgather bytes=1GiB",
        "machine=dgx-h100 boxes=64 leaf=32 oversubscription=2 collective=allreduce bytes=1GiB",
        "network=torus rows=8 cols=8 layers=16 bandwidth=50GB/s latency=1us collective=allgather bytes=1GiB",
        "network=dragonfly groups=33 routers=8 hosts=4 collective=broadcast bytes=1GiB",
        "network=fat_tree leaves=4 hosts=8 spines=2 collective=alltoall bytes=64MiB",
        "links=my-links.csv latency=0.7us switches=8,9 collective=allreduce bytes=64KB failed=broken.txt",
        "machine=imported.json collective=allgather bytes=1GiB",
        "machine=dgx-a100 boxes=2 nic=12.5GB/s collective=allreduce bytes=1GiB",
        "machine=dgx-h100*2+dgx-a100*2 collective=allreduce bytes=1GiB",
        "machine=dgx-h100 boxes=2 collective=demand demand=my-demand.csv",
        "machine=dgx-h100 boxes=2 collective=several collectives=my-collectives.csv",
        "machine=dgx-h100 boxes=2 collective=reshard from=mesh-a.toml to=mesh-b.toml tensors=tensors.csv",
    )
    GROUPS: ClassVar[bool] = True
    SWITCHES: ClassVar[bool] = True
    machine: Annotated[str | InputFile | InstanceOf[Mixture] | dict[str, Any] | None, BeforeValidator(_raw_machine)] = (
        Field(
            None,
            description=f"one of {', '.join(machine_names())}, or a FILE.json of `synth import`, or one box as those "
            "machines are; several kinds of boxes such as a.json*2+b.json*2; from Python also what "
            "synth.exchange.machines.formats.read has read",
        )
    )
    boxes: Count | None = Field(None, description="boxes of the machine (default 1)")
    gpus: Annotated[tuple[Count, ...] | None, BeforeValidator(_gpus)] = Field(
        None, description="GPUs of a box, or of every box in turn such as 4+6 (default: all that the machine has)"
    )
    domain: Count | None = Field(
        None, description="with a machine file: boxes of one NVLink domain, whose NVSwitches are one (GB200 NVL72: 18)"
    )
    leaf: Count | None = Field(
        None, description="boxes that a leaf switch joins: the boxes' switches become a fat tree of leaves and spines"
    )
    rails: Flag | None = Field(
        None,
        description="with leaf: on (default) for a leaf switch per rail (rail-optimised), off for one for all ports",
    )
    oversubscription: Annotated[float, Field(ge=1, le=1024)] | None = Field(
        None, description="with leaf: bandwidth to a leaf's boxes over that to the spines (default 1)"
    )
    nic: Rate | None = Field(None, description=f"with machine: of its NICs, {_SLOWEST}")
    nic_latency: Seconds | None = Field(None, description="with machine: of the links of its NICs, each")
    nvlink: Rate | None = Field(None, description=f"with machine: of its NVLinks, {_SLOWEST}")
    nvlink_latency: Seconds | None = Field(None, description="with machine: of its NVLinks, each")
    xgmi: Rate | None = Field(None, description=f"with machine: of its xGMI links, {_SLOWEST}")
    xgmi_latency: Seconds | None = Field(None, description="with machine: of its xGMI links, each")
    pcie: Rate | None = Field(None, description=f"with machine: of its PCIe links, {_SLOWEST}")
    pcie_latency: Seconds | None = Field(None, description="with machine: of its PCIe links, each")
    bandwidth: Annotated[Annotated[float, _of("rate")] | ByClass | None, _number(amounts.rate)] = Field(  # type: ignore[assignment]
        None,
        description=f"of every link, bytes/s (default {DEFAULT_BANDWIDTH:g}); with links: of those that state none; "
        "with machine: by class of link, NV=25GB/s,NET=50GB/s, of classes with gaps only the gaps",
    )
    latency: Annotated[Annotated[float, _of("time")] | ByClass | None, _number(amounts.duration)] = Field(  # type: ignore[assignment]
        None, description=f"likewise, seconds (default {DEFAULT_LATENCY:g})"
    )
    links: Links = Field(None, description=f"instead of a machine, {LINKS_HELP}; links of one group take turns")
    topology: InputFile | None = Field(None, description="instead of a machine, the record of a topology")
    network: str | None = Field(None, description=f"instead of a machine, a shape: one of {', '.join(SHAPES)}")
    rows: Count | None = Field(None, description="of a mesh or torus")
    cols: Count | None = Field(None, description="of a mesh or torus")
    layers: Count | None = Field(None, description="of a mesh or torus of three dimensions")
    nodes: Count | None = Field(None, description="of a line, ring, Kautz, full or star network")
    rings: Listed | None = Field(None, exclude=True, description="(no shape of this family has them)")
    leaves: Count | None = Field(None, description="leaf switches of a fat tree")
    hosts: Count | None = Field(None, description="ranks a leaf switch or router")
    spines: Count | None = Field(
        None, description="spine switches of a fat tree; with machine and leaf by default what 64 ports a switch take"
    )
    groups: Count | None = Field(None, description="of a dragonfly")
    routers: Count | None = Field(None, description="a group of a dragonfly")
    uplink_bandwidth: Rate | None = Field(None, description="leaf to spine, bytes/s (default: as the others)")
    global_bandwidth: Rate | None = Field(None, description="between groups, bytes/s (default: as the others)")
    switches: Listed | None = Field(
        None, description="with links: nodes that are switches, by number or name, such as 8,9"
    )
    collective: Literal[AnyCollective, "reshard"] = Field(
        "allgather", description="what to schedule; several: a list of collectives; reshard: tensors to another mesh"
    )
    bytes: Size | None = Field(
        None,
        description="as nccl-tests count (allgather: what every rank ends with; alltoall: what every rank sends); a "
        "size that does not divide among the ranks is rounded down as they do, and a note says so; a demand's: its sum",
    )
    root: Annotated[str, BeforeValidator(_as_word)] | None = Field(
        None, description="of broadcast, reduce, gather, scatter, by number or name (default: the first rank)"
    )
    ranks: Listed | None = Field(
        None, description="process group, nodes by number or name such as 0,1,4-7 or 0/gpu0,1/gpu0 (default: all ranks)"
    )
    relay: Flag = Field(False, description="whether ranks outside the group forward data")
    demand: InputFile | None = Field(
        None,
        description="CSV file with the header src,dst,bytes (nodes by number or name; 64KB), or bytes,holders,wanters"
        '[,mode] (nodes such as "0,1,4-7"; mode any: each holder has all of it, sum: a contribution), or JSON likewise',
    )
    collectives: InputFile | None = Field(
        None,
        description="with collective=several: CSV file with the header collective,bytes[,name,ranks,root,release,late,"
        'after,priority] (ranks such as "0,1,4-7" or "a,b", release such as 20us, after: names or numbers)',
    )
    objective: Objective | None = Field(
        None, description="with collective=several: last_end (default), or weighted_ends (the mean, by priority)"
    )
    ready: Annotated[Annotated[float, _of("time")] | InputFile | None, BeforeValidator(number_or_file)] = Field(
        None, description="when ranks have their own part: a time for all, or a CSV file with the header rank,ready"
    )
    late: Listed | None = Field(None, description="ranks that have it later: 3:300us,8-15:1ms; any:1ms: whoever it is")
    failed: InputFile | None = Field(
        None,
        description="file of lines 'link A B' (fails in both directions), 'link A -> B' (in one), either with the "
        "share of the bandwidth that is left, such as 11/12, and 'node A'",
    )
    switching: Literal["cut_through", "store_and_forward"] | None = Field(
        None, description="how switches forward (default: as the machine's file says, else cut_through)"
    )
    multicast: Flag = Field(False, description="cut_through: a transfer may fork in switches")
    buffer: Flag = Field(False, description="store_and_forward: a piece may wait in a switch")
    copies: Flag = Field(True, description="store_and_forward: a piece may leave a switch on several links")
    adds: Flag = Field(
        False, description="every switch adds: streams of one piece that meet leave as their sum (stored: with buffer)"
    )
    streams: int | None = Field(None, ge=1, description="with multicast or adds: how many at once in every switch")
    add_rate: Rate | None = Field(None, description="with adds: of a sum out of a port (default: as the link)")

    @classmethod
    def names(cls) -> list[str]:
        first = ["machine", *OF_BOXES[:6], *_RATES, "topology", "network", "links", "switches"]
        return first + [key for key in super().names() if key not in (*first, "rings")]

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        of_machine = cls._machine_faults if "machine" in values else cls._network_faults
        faults = (cls._topology_faults if "topology" in values else of_machine)(values)
        if "switches" in values and "links" not in values:
            faults.append(Fault("switches", "has no meaning without links", values["switches"], True))
        mode = mode_of(values.get("machine"), values.get("switching"))
        for key, needed in _ONLY_WITH.items():
            if values.get(key) not in (None, PLAIN[key]) and mode not in (None, needed):
                faults.append(Fault(key, f"has no meaning with switching={mode}", values[key], True))
        faults += missing_faults(values)
        return faults + named_faults(values, None if faults else cls._machine(values))

    @classmethod
    def _machine(cls, values: Mapping[str, Any]) -> Machine | None:
        """The machine that keys without a fault so far describe; None where a file of theirs is wrong."""
        keys = cls.model_construct(**values)
        keys._given.update(values)
        try:
            return _built(keys.raw_network())
        except InputError:
            return None

    @classmethod
    def _network_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults = list(super().faults_in(values))
        for key in (*OF_BOXES[:6], *_RATES):
            if key in values:
                faults.append(Fault(key, "has no meaning without machine", values[key], True))
        for key in ("bandwidth", "latency"):
            if isinstance(values.get(key), dict):
                faults.append(Fault(key, "has classes of links only with machine", ",".join(values[key]), True))
        if "network" not in values and "links" not in values:
            needed = Fault("machine", "give machine=NAME, network=SHAPE or links=FILE.csv")
            return [*(fault for fault in faults if fault.path != "network"), needed]
        return faults

    @classmethod
    def _topology_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        own = {"machine", "network", "links", *OF_BOXES[:6], *_RATES, *cls.OF_NETWORK}
        faults = [Fault(key, "has no meaning with topology", values[key], True) for key in values if key in own]
        return faults + guarded(lambda: values["topology"].once(table_of_record))

    @classmethod
    def _machine_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        named = isinstance(values["machine"], str)
        own = {"network", "links", *cls.OF_SHAPE} - ({"spines"} if "leaf" in values else set())
        faults = [Fault(key, "has no meaning with machine", values[key], True) for key in values if key in own]
        if not named:
            faults += guarded(lambda: name_of(values["machine"]))
        elif values["machine"] not in machine_names():
            known = one_of(values["machine"], machine_names())
            words = f"unknown; {known}, or FILE.json, or several such as a.json*2+b.json"
            faults.append(Fault("machine", words, values["machine"], True))
        else:
            faults += unknown_classes(values["machine"], asked_of(values))
        return faults

    @classmethod
    def links_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        """As of every network, and switches that are no nodes of the table."""
        if "machine" in values:
            return []
        faults = super().links_faults(values)
        if not faults and values.get("links") is not None and "switches" in values:
            faults += guarded(lambda: nodes_meant(values["switches"], "switches", cls.table(values).names))
        return faults

    def raw_network(self) -> dict[str, Any]:
        """The network as it stands in an instance file. Raises :class:`InputError` for a file that is wrong."""
        return self.expanded().network

    def expanded(self) -> Expanded:
        """The network as it stands in an instance file, and what was replaced or filled in it. Raises
        :class:`InputError` for a file that is wrong."""
        if self.machine is not None:
            asked = asked_of({key: getattr(self, key) for key in self.given})
            return expanded(self.machine, asked)
        raw = super().raw_network() if self.topology is None else self.topology.once(table_of_record).raw()
        if self.links is not None:
            table = table_of_links(self.links)
            marked = [table.names.index(name) for name in table.switches]
            switches = marked if self.switches is None else nodes_meant(self.switches, "switches", table.names)
            raw |= {"switches": switches} if switches else {}
        return Expanded(raw, [])


def make(keys: FabricKeys) -> FabricInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    found = keys.expanded()
    network = found.network
    raw: dict[str, Any] = {"network": network, "collective": keys.collective}
    lines, ready_lines = _read_tables(keys, network, raw), list[int]()
    raw |= {"objective": keys.objective} if keys.objective is not None else {}
    places = _places(network)
    for key, meant in (("root", node_meant), ("ranks", nodes_meant)):
        if getattr(keys, key) is not None:
            raw[key] = meant(getattr(keys, key), key, places.names if places else None)
    if keys.relay:
        raw["relay"] = True
    raw["switching"] = _switching(keys)
    notes = [*found.notes, *keys.network_notes()]
    if keys.failed is not None:
        raw["failed"], told = _failed(keys.failed, network)
        notes += told
    if keys.bytes is not None:
        raw["bytes"], told = _size(keys, network, raw)
        notes += told
    if keys.ready is not None or keys.late is not None:
        ready_lines = put_together(keys, places, _members(network, raw), raw)
    if not isinstance(keys.machine, str | None):
        own = [shlex.quote(word) for word in shlex.split(keys.command) if not word.startswith("machine=")]
        raw["source"] = ". ".join([source_of(keys.machine), " ".join(own), *found.notes])
    try:
        return keys.instance("fabric", FabricInstance, instance_name(keys, raw), notes=notes, **raw)
    except InputError as error:
        faults = [_of_table(keys, named(fault, keys, ready_lines), lines) for fault in error.faults]
        raise InputError(faults, error.source) from None


def _read_tables(keys: FabricKeys, network: Mapping[str, Any], raw: dict[str, Any]) -> list[int]:
    """Put the rows of the file of a demand or of collectives into ``raw``; the line of each."""
    lines: list[int] = []
    try:
        if keys.collective == RESHARD:
            raw |= reshard_rows({key: getattr(keys, key) for key in FILES}, _built(network))
        if keys.demand is not None:
            table = traffic_table.read_table(keys.demand, _places(network))
            raw["bytes"], lines = table.bytes, table.lines
            stated = {TRAFFIC: table.traffic, "demand": table.demand}
            if keys.collective in stated:
                raw["collective"] = TRAFFIC if table.demand is None else "demand"
            raw |= {key: rows for key, rows in stated.items() if rows is not None}
        if keys.collectives is not None:
            raw["collectives"], lines = collective_rows(keys.collectives, _places(network))
            raw["bytes"] = sum(row["bytes"] for row in raw["collectives"])
    except InputError as error:
        raise InputError(with_source(error)) from None
    return lines


def _of_table(keys: FabricKeys, fault: Fault, lines: Sequence[int]) -> Fault:
    """A fault of the instance as one of the file that its rows come from."""
    if keys.collectives is not None:
        return of_line(fault, keys.collectives, lines)
    return fault if keys.demand is None else traffic_table.by_line(fault, keys.demand, lines)


def _size(keys: FabricKeys, network: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The size as nccl-tests would run it, and what was rounded in words."""
    asked, ranks = keys.bytes or 0, len(_members(network, raw))
    size = rounded_size(keys.collective, asked, ranks) if ranks else asked
    if size in (0, asked):
        return asked, []
    return size, [f"bytes={asked} does not divide among {ranks} ranks: rounded down to {size}, as nccl-tests does"]


def _members(network: Mapping[str, Any], raw: Mapping[str, Any]) -> list[int]:
    """The ranks that take part; none where the network is wrong."""
    machine, broken = _built(network), set((raw.get("failed") or {}).get("nodes") or ())
    if "ranks" in raw or machine is None:
        return list(raw["ranks"]) if machine is not None else []
    return [int(v) for v in machine.ranks if int(v) not in broken]


def _switching(keys: FabricKeys) -> dict[str, Any]:
    mode = mode_of(keys.machine, keys.switching)
    return {"mode": mode} | {key: getattr(keys, key) for key in PLAIN if key in keys.given}


def _failed(file: InputFile, network: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """``failed`` of the instance, and the same in words. Raises :class:`InputError`."""
    machine = _built(network)
    found = failures(file, machine)
    return found, [] if machine is None else in_words(found, machine.names)


def _built(network: Mapping[str, Any]) -> Machine | None:
    """The machine, or None where the network is wrong, which the instance's own validation then says in full."""
    kinds: dict[str, type[Part]] = {"machine": MachineSpec, **FabricKeys.KINDS}
    try:
        return built(kinds[network["kind"]].model_validate(network))
    except ValueError:
        return None


def _places(network: Mapping[str, Any]) -> Places | None:
    """The nodes that may hold data; None where the network is wrong."""
    machine = _built(network)
    return Places(machine) if machine else None
