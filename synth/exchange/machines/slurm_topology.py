"""Slurm's ``topology.conf`` (tree and block), ``scontrol show topology``, ``topology.yaml`` (slurm.schedmd.com).

A tree: ``SwitchName=leaf1 Nodes=n[01-04]``, ``SwitchName=spine Switches=leaf[1-2]``; each switch has one link to each
node and switch that it names. Blocks: ``BlockName=b1 Nodes=…``, nodes on one switch. Rates are in neither:
``LinkSpeed`` has no unit and Slurm does not use it. Of several topologies in a ``topology.yaml`` the default is read,
or the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from synth.errors import Fault, InputError
from synth.exchange.machines.fabrics import Cable, Fabric, Found, fabric, words_of
from synth.exchange.machines.hardened import yaml_value
from synth.exchange.machines.machine import NO_HINTS, Hints, listed
from synth.network.links_table import MOST_NODES
from synth.text.csv import MOST_FAULTS
from synth.text.hostlists import expanded

ABOVE_BLOCKS = "blocks"  # the switch that is taken to join them
_LINE = re.compile(r"(?im)^[ \t]*(?:SwitchName|BlockName)[ \t]*=")
_YAML = (
    re.compile(r"(?m)^[ \t]*(?:-[ \t]+)?topology[ \t]*:[ \t]*[^\[\s]"),
    re.compile(r"(?m)^[ \t]*(?:-[ \t]+)?(?:tree|block|flat|ring|torus3d)[ \t]*:"),
)
_PAIR = re.compile(r'([A-Za-z]{1,20})[ \t]*=[ \t]*("[^"]*"|\S+)')
_KEYS = (
    "switchname", "nodes", "switches", "linkspeed", "level", "blockname", "blocksizes", "blocksize", "blockindex",
    "aggregatedblock",
)  # fmt: skip
_NOT_READ = {"flat": "flat: it says nothing of switches", "ring": "a ring", "torus3d": "a torus"}


class _Switch(NamedTuple):
    """A switch or block as it stands: where, its name, its nodes and switches (lists of hosts in one text)."""

    where: str
    name: str
    nodes: str
    switches: str = ""
    speed: str = ""


def looks_like(text: str) -> bool:
    """Whether a line of a ``topology.conf`` stands there, or the keys of a ``topology.yaml``."""
    return _LINE.search(text) is not None or _is_yaml(text)


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Fabric:
    """The machine: nodes are ranks. Raises :class:`InputError` with every fault by its line."""
    found, block = Found(), False
    faults: list[Fault] = []
    if _LINE.search(text):
        rows = _conf(text, faults)
        block = any(one is None for one, _ in rows)
        switches = [row for _, row in rows]
    else:
        switches, block = _yaml(text, found)
    if faults:
        raise InputError(faults)
    _add(found, switches, block)
    kind = "blocks" if block else "a tree"
    return fabric(found, name, "slurm", words_of(f"Slurm's topology, {kind}", found, found.cables))


def _is_yaml(text: str) -> bool:
    return all(marks.search(text) for marks in _YAML)


def _conf(text: str, faults: list[Fault]) -> list[tuple[str | None, _Switch]]:
    """The rows of a ``topology.conf``; the first of a pair is None for blocks."""
    rows: list[tuple[str | None, _Switch]] = []
    for n, line in _joined(text):
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
        where, rest = f"line {n}", _PAIR.sub("", line).strip()
        unknown = [key for key in pairs if key not in _KEYS]
        if unknown or rest:
            faults.append(
                Fault(where, "must be key=value with keys of topology.conf", listed(unknown) or rest[:60], True)
            )
        elif "switchname" in pairs or "blockname" in pairs:
            own = pairs.get("switchname"), pairs.get("switchname") or pairs["blockname"]
            if "level" in pairs and pairs.get("switches"):  # scontrol prints all nodes below a switch
                pairs["nodes"] = ""
            rest_of = (pairs.get(key, "") for key in ("nodes", "switches", "linkspeed"))
            rows.append((own[0], _Switch(where, own[1], *rest_of)))
    if len({kind is None for kind, _ in rows}) > 1:
        faults.append(Fault("", "names switches and blocks: one of them a file"))
    return rows


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those that end with a backslash joined, with the number of the first."""
    started, whole = 0, ""
    for n, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].rstrip()
        started = started or n
        whole += bare.removesuffix("\\")
        if not bare.endswith("\\"):
            if whole.strip():
                yield started, whole
            started, whole = 0, ""
    if whole.strip():
        yield started, whole


def _yaml(text: str, found: Found) -> tuple[list[_Switch], bool]:
    """The switches or blocks of the default topology, and whether they are blocks. Raises :class:`InputError`."""
    raw = yaml_value(text)
    every = [one for one in raw if isinstance(one, dict)] if isinstance(raw, list) else []
    if not every or len(every) < len(raw):
        raise InputError("must be a list of topologies, each with the keys topology and tree, block or flat")
    chosen = next((one for one in every if one.get("cluster_default") is True), every[0])
    others = [str(one.get("topology"))[:40] for one in every if one is not chosen]
    if others:
        found.left_out.append(f"other topologies of the file: {listed(others)}")
    for kind, rows, own, nodes, below in (
        ("tree", "switches", "switch", "nodes", "children"),
        ("block", "blocks", "block", "nodes", ""),
    ):
        part = chosen.get(kind)
        if isinstance(part, Mapping) and isinstance(part.get(rows), list):
            where = f"{str(chosen.get('topology'))[:40]}.{kind}.{rows}"
            faults: list[Fault] = []
            switches = [_of_yaml(row, f"{where}[{i}]", (own, nodes, below), faults) for i, row in enumerate(part[rows])]
            if faults:
                raise InputError(faults)
            return switches, kind == "block"
    other = next((words for kind, words in _NOT_READ.items() if kind in chosen), None)
    raise InputError("holds no tree or block" if other is None else f"the topology is {other}; a tree or block is read")


def _of_yaml(row: Any, where: str, keys: tuple[str, str, str], faults: list[Fault]) -> _Switch:
    values = [row.get(key, "") if key else "" for key in keys] if isinstance(row, Mapping) else [""]
    if not values[0] or not all(isinstance(value, (str, int)) for value in values):
        faults.append(Fault(where, f"must have the keys {', '.join(filter(None, keys))} with texts"))
        return _Switch(where, "", "")
    return _Switch(where, *(str(value) for value in values))


def _add(found: Found, switches: list[_Switch], block: bool) -> None:
    """Hosts, switches and cables of these rows. Raises :class:`InputError`."""
    faults: list[Fault] = []
    at: dict[str, str] = {}
    for one in switches:
        _demand_few(faults)
        if one.name in found.switches:
            faults.append(Fault(one.where, "stands twice", one.name, True))
        found.switches[one.name] = None
    for one in switches:
        _demand_few(faults)
        for host in _hosts(one, "nodes", faults):
            if host in at:
                faults.append(Fault(one.where, f"is on {at[host]} already", host, True))
            at[host] = one.name
            found.hosts[host] = None
            found.cables.append(Cable((host, one.name)))
        for child in _hosts(one, "switches", faults):
            if child not in found.switches or child == one.name:
                faults.append(Fault(one.where, "is no other switch of the file", child, True))
            found.cables.append(Cable((child, one.name)))
        if not one.nodes and not one.switches:
            faults.append(Fault(one.where, "has neither nodes nor switches", one.name, True))
    if faults:
        raise InputError(faults)
    _say(found, switches, block)


def _demand_few(faults: list[Fault]) -> None:
    """Read no further where very much is wrong."""
    if len(faults) >= MOST_FAULTS:
        raise InputError([*faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])


def _say(found: Found, switches: list[_Switch], block: bool) -> None:
    """What is taken for granted of the file, and what it leaves open."""
    if block and len(switches) > 1:
        above = ABOVE_BLOCKS if ABOVE_BLOCKS not in {*found.switches, *found.hosts} else f"{ABOVE_BLOCKS} above"
        found.switches[above] = None
        found.cables += [Cable((one.name, above)) for one in switches]
        found.assumed.append(f"one switch, {above}, joins the blocks: the file says nothing of what is above them")
    speeds = [one.speed for one in switches if one.speed]
    if speeds:
        found.unknown.append(f"what LinkSpeed={listed(dict.fromkeys(speeds))} counts: Slurm gives it no unit")
    if not block and any(one.switches for one in switches):
        found.assumed.append("one link joins two switches: Slurm's tree does not count cables")


def _hosts(one: _Switch, key: str, faults: list[Fault]) -> list[str]:
    text = str(getattr(one, key))
    try:
        return expanded(text, MOST_NODES) if text else []
    except ValueError as error:
        faults.append(Fault(f"{one.where}, {key}", str(error), text[:60], True))
        return []
