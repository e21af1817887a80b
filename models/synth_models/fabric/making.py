"""``synth make fabric``: a machine by name, by shape or link by link, and a collective on it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from synth.errors import Fault, InputError, one_of
from synth.exchange.machines.completion import missing
from synth.exchange.machines.file import as_raw, checked, provenance, read_machine_file
from synth.exchange.machines.machine import Machine as ReadMachine
from synth.exchange.machines.machine import listed
from synth.instance import Part
from synth.making import Count, Flag, Listed, Rate, Size
from synth.network.keys import LINKS_HELP, Links, NetworkKeys, table_of_links
from synth.text.input_file import InputFile
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import rounded_size
from synth_models.fabric.problem.box_machine import MachineSpec, machine_file, machine_names
from synth_models.fabric.problem.failures import failures, in_words, read_statements
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.network_spec import SHAPES, OwnSpec, built
from synth_models.fabric.problem.several import SEVERAL, AnyCollective, Objective
from synth_models.fabric.problem.tables import by_line, collective_rows, demand_rows, node_numbers, of_line

_SHORT = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3))
_SIDES = ("rows", "cols", "layers", "nodes", "dimension", "degree", "leaves", "hosts", "spines", "groups", "routers")
_OF_TREE = ("leaf", "rails", "oversubscription", "spines")
_OF_ONE = ("bytes", "root", "ranks", "demand")  # what each of several collectives has for itself
# what is usual, and where else it has a meaning
_PLAIN = {"multicast": False, "buffer": False, "copies": True, "adds": False, "streams": None, "add_rate": None}
_ONLY_WITH = dict.fromkeys(("multicast", "streams", "add_rate"), "cut_through")
_ONLY_WITH |= dict.fromkeys(("buffer", "copies"), "store_and_forward")


def _raw_machine(value: Any) -> Any:
    """What the readers of topology formats return, as a machine file holds it; a path as the file it names."""
    if isinstance(value, str) and value not in machine_names() and (value.endswith(".json") or "/" in value):
        return InputFile(value)
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


class FabricKeys(NetworkKeys):
    """The machine, the collective and its size.

    A ``failed`` file holds lines ``link A B`` (all links between A and B, both directions), ``link A -> B`` (one
    direction), ``link A B 11/12`` (that share of the bandwidth is left), ``node A``; nodes by number or by name
    (``0/gpu3``, ``ib0``). A ``demand`` file is a CSV file with the header ``src,dst,bytes``; nodes likewise, bytes also
    with a unit (``64KB``). A ``collectives`` file is a CSV file, too: a collective a row.
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
        "machine=dgx-h100 boxes=2 collective=demand demand=my-demand.csv",
        "machine=dgx-h100 boxes=2 collective=several collectives=my-collectives.csv",
    )
    GROUPS: ClassVar[bool] = True
    SWITCHES: ClassVar[bool] = True
    machine: Annotated[str | InputFile | dict[str, Any] | None, BeforeValidator(_raw_machine)] = Field(
        None,
        description=f"one of {', '.join(machine_names())}, or a FILE.json of `synth import`; from Python also what "
        "synth.exchange.machines.formats.read has read",
    )
    boxes: Count | None = Field(None, description="boxes of the machine (default 1)")
    gpus: Annotated[tuple[Count, ...] | None, BeforeValidator(_gpus)] = Field(
        None, description="GPUs of a box, or of every box in turn such as 4+6 (default: all that the machine has)"
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
    links: Links = Field(None, description=f"instead of a machine, {LINKS_HELP}; links of one group take turns")
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
    collective: AnyCollective = Field("allgather", description="what to schedule; several: a list of collectives")
    bytes: Size | None = Field(
        None,
        description="as nccl-tests count (allgather: what every rank ends with; alltoall: what every rank sends); a "
        "size that does not divide among the ranks is rounded down as they do, and a note says so; a demand's: its sum",
    )
    root: int | None = Field(None, ge=0, description="of broadcast, reduce, gather, scatter (default: the first rank)")
    ranks: Listed | None = Field(None, description="process group, node numbers such as 0,1,4-7 (default: all ranks)")
    relay: Flag = Field(False, description="whether ranks outside the group forward data")
    demand: InputFile | None = Field(
        None, description="CSV file with the header src,dst,bytes (nodes by number or name; 64KB)"
    )
    collectives: InputFile | None = Field(
        None,
        description="with collective=several: CSV file with the header collective,bytes[,name,ranks,root,release,"
        'priority] (ranks such as "0,1,4-7", release such as 20us)',
    )
    objective: Objective | None = Field(
        None, description="with collective=several: last_end (default), or weighted_ends (the mean, by priority)"
    )
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
        first = ["machine", "boxes", "gpus", "leaf", "rails", "oversubscription", "network", "links", "switches"]
        return first + [key for key in super().names() if key not in (*first, "rings")]

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults = cls._machine_faults(values) if "machine" in values else cls._network_faults(values)
        if "switches" in values and "links" not in values:
            faults.append(Fault("switches", "has no meaning without links", values["switches"], True))
        if "ranks" in values:
            faults += _guarded(lambda: node_numbers(values["ranks"], "ranks"))
        mode = _mode(values.get("machine"), values.get("switching"))
        for key, needed in _ONLY_WITH.items():
            if values.get(key) not in (None, _PLAIN[key]) and mode not in (None, needed):
                faults.append(Fault(key, f"has no meaning with switching={mode}", values[key], True))
        faults += _missing(values)
        for key, reader in (("demand", demand_rows), ("failed", read_statements), ("collectives", collective_rows)):
            if values.get(key) is not None:
                faults += _guarded(lambda key=key, reader=reader: reader(values[key]))
        return faults

    @classmethod
    def _network_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults = list(super().faults_in(values))
        for key in ("boxes", "gpus", "leaf", "rails", "oversubscription"):
            if key in values:
                faults.append(Fault(key, "has no meaning without machine", values[key], True))
        needed = "machine=NAME, network=SHAPE or links=FILE.csv"
        if "network" not in values and "links" not in values:
            return [fault for fault in faults if fault.path != "network"] + [Fault("machine", f"give {needed}")]
        return faults

    @classmethod
    def _machine_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        imported = _is_imported(values["machine"])
        own = {"network", "links", *cls.OF_NETWORK, *(("boxes", "gpus", *_OF_TREE) if imported else ())}
        if "leaf" in values and not imported:
            own -= {"spines"}
        faults = [Fault(key, "has no meaning with machine", values[key], True) for key in values if key in own]
        if imported:
            faults += _guarded(lambda: _imported(values["machine"]))
        elif values["machine"] not in machine_names():
            known = one_of(values["machine"], machine_names())
            faults.append(Fault("machine", f"unknown; {known}, or FILE.json", values["machine"], True))
        return faults

    @classmethod
    def links_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        """As of every network, and switches that are no nodes of the table."""
        if "machine" in values:
            return []
        faults = super().links_faults(values)
        if not faults and values.get("links") is not None and "switches" in values:
            faults += _guarded(lambda: _named(values["switches"], "switches", cls.table(values).names))
        return faults

    def raw_network(self) -> dict[str, Any]:
        """The network as it stands in an instance file. Raises :class:`InputError` for a links file that is wrong."""
        if self.machine is not None:
            if _is_imported(self.machine):
                return dict(_imported(self.machine)["network"])
            tree = {key: getattr(self, key) for key in _OF_TREE if key in self.given}
            boxes = self.boxes or len(self.gpus or (0,))
            own = {} if self.gpus is None else {"gpus": list(self.gpus * (boxes if len(self.gpus) == 1 else 1))}
            return {"kind": "machine", "name": self.machine, "boxes": boxes, **own, **tree}
        raw = super().raw_network()
        if self.links is not None:
            table = table_of_links(self.links)
            marked = [table.names.index(name) for name in table.switches]
            switches = marked if self.switches is None else _named(self.switches, "switches", table.names)
            raw |= {"switches": switches} if switches else {}
        return raw


def _missing(values: Mapping[str, Any]) -> Iterator[Fault]:
    """What the collective needs and is not given, and what belongs elsewhere."""
    collective = values.get("collective")
    needed = {"demand": ("demand", ": demand=FILE.csv"), SEVERAL: ("collectives", ": collectives=FILE.csv")}
    key, how = needed.get(str(collective), ("bytes", ""))
    if key not in values:
        yield Fault(key, f"is missing{how}")
    if collective == SEVERAL:
        yield from (Fault(key, "belongs into the file of collectives") for key in _OF_ONE if key in values)


def make(keys: FabricKeys) -> FabricInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    network = keys.raw_network()
    raw: dict[str, Any] = {"network": network, "collective": keys.collective}
    lines = _read_tables(keys, network, raw)
    raw |= {key: getattr(keys, key) for key in ("objective", "root") if getattr(keys, key) is not None}
    if keys.ranks is not None:
        raw["ranks"] = node_numbers(keys.ranks, "ranks")
    if keys.relay:
        raw["relay"] = True
    raw["switching"] = _switching(keys)
    notes = keys.network_notes()
    if keys.failed is not None:
        raw["failed"], told = _failed(keys.failed, network)
        notes += told
    if keys.bytes is not None:
        raw["bytes"], told = _size(keys, network, raw)
        notes += told
    if _is_imported(keys.machine):
        own = [shlex.quote(word) for word in shlex.split(keys.command) if not word.startswith("machine=")]
        raw["source"] = f"{provenance(_imported(keys.machine))}. {' '.join(own)}"
    try:
        return keys.instance("fabric", FabricInstance, _name(keys, network, raw.get("bytes", 0)), notes=notes, **raw)
    except InputError as error:
        raise InputError([_of_table(keys, fault, lines) for fault in error.faults], error.source) from None


def _read_tables(keys: FabricKeys, network: Mapping[str, Any], raw: dict[str, Any]) -> list[int]:
    """Put the rows of the file of a demand or of collectives into ``raw``; the line of each."""
    lines: list[int] = []
    try:
        if keys.demand is not None:
            raw["demand"], lines = demand_rows(keys.demand, _built(network))
            raw["bytes"] = sum(amount for _, _, amount in raw["demand"])
        if keys.collectives is not None:
            raw["collectives"], lines = collective_rows(keys.collectives)
            raw["bytes"] = sum(row["bytes"] for row in raw["collectives"])
    except InputError as error:
        raise InputError(_with_source(error)) from None
    return lines


def _of_table(keys: FabricKeys, fault: Fault, lines: Sequence[int]) -> Fault:
    """A fault of the instance as one of the file that its rows come from."""
    if keys.collectives is not None:
        return of_line(fault, keys.collectives, lines)
    return fault if keys.demand is None else by_line(fault, keys.demand, lines)


def _size(keys: FabricKeys, network: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The size as nccl-tests would run it, and what was rounded in words."""
    asked, machine = keys.bytes or 0, _built(network)
    if machine is None:
        return asked, []
    broken = set((raw.get("failed") or {}).get("nodes") or ())
    ranks = len(raw["ranks"]) if "ranks" in raw else sum(int(v) not in broken for v in machine.ranks)
    size = rounded_size(keys.collective, asked, ranks) if ranks else asked
    if size in (0, asked):
        return asked, []
    return size, [f"bytes={asked} does not divide among {ranks} ranks: rounded down to {size}, as nccl-tests does"]


def _is_imported(machine: Any) -> bool:
    """Whether it is a machine that ``synth import`` has read: its file or, from the command itself, its data."""
    return isinstance(machine, (dict, InputFile))


def _imported(machine: Any) -> dict[str, Any]:
    """The data of such a machine. Raises :class:`InputError`."""
    return checked(machine, "machine") if isinstance(machine, dict) else machine.once(read_machine_file)


def _switching(keys: FabricKeys) -> dict[str, Any]:
    mode = _mode(keys.machine, keys.switching)
    return {"mode": mode} | {key: getattr(keys, key) for key in _PLAIN if key in keys.given}


def _mode(machine: Any, switching: str | None) -> str | None:
    """How the switches forward; None for a machine that nobody knows."""
    if switching is not None or machine is None:
        return switching or "cut_through"
    if _is_imported(machine):
        try:
            return str(_imported(machine)["switching"])
        except InputError:
            return None
    return machine_file(machine).switching if machine in machine_names() else None


def _name(keys: FabricKeys, network: Mapping[str, Any], size: int) -> str:
    place = _place(keys, network)
    extra = "-failed" if keys.failed is not None else ""
    extra += f"-r{len(node_numbers(keys.ranks, 'ranks'))}" if keys.ranks is not None else ""
    extra += f"-root{keys.root}" if keys.root is not None else ""
    extra += "-oneway" if network.get("bidirectional") is False else ""
    extra += "".join(f"-{word}" for word in _unusual(keys))
    what = f"{keys.collective.replace('_', '')}-{_short(size)}"
    if keys.collectives is not None:
        what = "several-" + (re.sub(r"[^A-Za-z0-9]+", "-", keys.collectives.stem).strip("-") or "collectives")
    return f"{place or 'links'}-{what}{extra}"


def _place(keys: FabricKeys, network: Mapping[str, Any]) -> str:
    """The machine or shape, as names of instances begin."""
    if _is_imported(keys.machine):
        return re.sub(r"[^A-Za-z0-9]+", "-", _imported(keys.machine)["name"]).strip("-")[:60]
    if isinstance(keys.machine, str):
        spec = MachineSpec.model_construct(**network)  # what is wrong in it is said where the instance is read
        place = "-".join([keys.machine, *([f"x{spec.boxes}"] if spec.boxes > 1 else []), *spec.variant_words])
    elif network["kind"] == "links":
        place = re.sub(r"[^A-Za-z0-9]+", "-", keys.links.stem if isinstance(keys.links, InputFile) else "links").strip(
            "-"
        )
    else:
        sides = "x".join(str(network[key]) for key in _SIDES if key in network)
        place = f"{network['kind'].replace('_', '')}-{sides}"
    return place


def _unusual(keys: FabricKeys) -> Iterator[str]:
    """What of the machine's ways is not as usual, in words for a name."""
    if keys.relay:
        yield "relay"
    if keys.switching is not None and keys.switching != _mode(keys.machine, None):
        yield "stored" if keys.switching == "store_and_forward" else "cutthrough"
    for key, usual in _PLAIN.items():
        value = getattr(keys, key)
        if value != usual:
            yield (
                (key if value else f"no{key}")
                if isinstance(value, bool)
                else f"{key.replace('_', '')}{value:g}".replace("+", "")
            )


def _short(size: int) -> str:
    for word, unit in _SHORT:
        if size and size % unit == 0:
            return f"{size // unit}{word}"
    return f"{size}B"


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


def _named(text: str, key: str, names: Sequence[str]) -> list[int]:
    """Nodes by name, or by number as :func:`node_numbers`. Raises :class:`InputError`."""
    number = {name: index for index, name in enumerate(names)}
    found: list[int] = []
    for part in map(str.strip, text.split(",")):
        if part in number:
            found.append(number[part])
        elif re.fullmatch("[0-9]+(-[0-9]+)?", part):
            found += node_numbers(part, key)
        else:
            raise InputError([Fault(key, f"no such node; there are {listed(names)}", part, True)])
    return found


def _guarded(read: Any) -> list[Fault]:
    try:
        read()
    except InputError as error:
        return _with_source(error)
    return []


def _with_source(error: InputError) -> list[Fault]:
    """Its faults, each with the name of the file it is about."""
    return [replace(fault, path=", ".join(filter(None, (error.source, fault.path)))) for fault in error.faults]
