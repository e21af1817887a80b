"""``machine=`` of ``synth make fabric`` where it is no name: a file, or boxes of several kinds (``a.json*2+b.json*2``).

A file is a machine file (``synth-machine/1``), or one box as data, as the machines that come with the package are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError, one_of
from synth.exchange.machines.file import checked, provenance
from synth.instance import parse, parse_json
from synth.text.input_file import InputFile
from synth_models.fabric.problem.box_cluster import Above, Box, Cluster
from synth_models.fabric.problem.box_data import MachineFile, MachineLink, machine_file, machine_names
from synth_models.fabric.problem.box_machine import demand_no_tree, sizes
from synth_models.fabric.problem.link_classes import CALLED, Stated, What, concerning, meant
from synth_models.fabric.problem.stated_box import WHATS, Asked, box_of, classed_links, with_asked

MOST_NODES = 65_536
OF_TREE = ("leaf", "rails", "oversubscription", "spines")
OF_BOXES = ("boxes", "gpus", "domain", *OF_TREE)
KEYS_OF_SPECS: tuple[tuple[What, str], ...] = (("bandwidth", "bandwidths"), ("latency", "latencies"))
CLASSES = ("nic", "nvlink", "xgmi", "pcie")  # of links, which have keys of their own
Described = MachineFile | dict[str, Any]  # boxes as data, or what a machine file holds


@dataclass(frozen=True)
class Mixture:
    """Boxes of several kinds: names or files, and how many of each."""

    parts: tuple[tuple[str | InputFile, int], ...]


@dataclass(frozen=True)
class Expanded:
    """The network as an instance holds it, and in words what of it was replaced or filled."""

    network: dict[str, Any]
    notes: list[str]


def asked_of(values: Mapping[str, Any]) -> Asked:
    """What keys of ``synth make`` say beside a machine."""
    numbers: dict[What, dict[str, float]] = {"bandwidth": {}, "latency": {}}
    called: dict[What, dict[str, str]] = {"bandwidth": {}, "latency": {}}
    ends: tuple[tuple[What, str], ...] = (("bandwidth", ""), ("latency", "_latency"))
    for what, end in ends:
        stated = values.get(what)
        for word, value in (stated if isinstance(stated, dict) else {"": stated}).items():
            if value is not None:
                numbers[what][word], called[what][word] = value, f"{what}={word}" if word else what
        for word in CLASSES:
            if values.get(f"{word}{end}") is not None:
                numbers[what][word], called[what][word] = values[f"{word}{end}"], f"{word}{end}"
    return Asked({key: values[key] for key in OF_BOXES if values.get(key) is not None}, numbers, called)


def mixture_of(text: str) -> Mixture | None:
    """What ``a.json*2+b.json`` means; None for a text that is not of this form. Raises ``ValueError``."""
    if Path(text).is_file() or not re.search(r"\*[0-9]+(\+|$)|\.json\+|\+.*\.json$", text):
        return None
    parts: list[tuple[str | InputFile, int]] = []
    for word in text.split("+"):
        found = re.fullmatch(r"(?P<name>.+?)(?:\*(?P<count>[0-9]{1,5}))?", word.strip())
        name, count = ("", 0) if found is None else (found["name"], int(found["count"] or 1))
        if count < 1:
            raise ValueError("must be a name or FILE.json, or several with how many of each: a.json*2+b.json*2")
        if name not in machine_names() and not name.endswith(".json") and "/" not in name:
            raise ValueError(f"{name} is unknown; {one_of(name, machine_names())}, or FILE.json")
        parts.append((name if name in machine_names() else InputFile(name), count))
    return Mixture(tuple(parts))


def read_described(file: InputFile) -> Described:
    """What a file holds. Raises :class:`InputError`."""
    try:
        raw = parse_json(file.data, str(file))
    except InputError as error:
        if file.data.lstrip()[:1] in (b"{", b"["):
            raise
        words = "is no machine file, which are JSON; `synth import` makes one of a topology that another tool prints"
        raise InputError(f"{words} ({error.faults[0].message})", str(file)) from None
    if isinstance(raw, dict) and "format" not in raw and {"gpus", "links", "like"} & set(raw):
        if "like" in raw:
            raw = like_another(raw, str(file))
        return parse(raw, MachineFile, str(file))
    return checked(raw, str(file))


def like_another(raw: dict[str, Any], source: str) -> dict[str, Any]:
    """The data with what it takes from the machine that it is ``like``. Raises :class:`InputError`."""
    if raw["like"] not in machine_names():
        raise InputError([Fault("like", one_of(raw["like"], machine_names()), raw["like"], True)], source)
    return machine_file(raw["like"]).model_dump(mode="json") | {k: v for k, v in raw.items() if k != "like"}


def described(part: str | InputFile | dict[str, Any]) -> Described:
    """The machine of a name, in a file, or as a machine file's data. Raises :class:`InputError`."""
    if isinstance(part, InputFile):
        return part.once(read_described)
    return machine_file(part) if isinstance(part, str) else checked(part, "machine")


def name_of(machine: Any) -> str:
    """What a machine is called in names of instances."""
    if isinstance(machine, Mixture):
        words = [name_of(part) + (f"-x{count}" if count > 1 else "") for part, count in machine.parts]
        return "-".join(words)
    found = described(machine)
    return found.name if isinstance(found, MachineFile) else str(found["name"])


def switching_of(machine: Any) -> str:
    """How its switches forward. Raises :class:`InputError` where its boxes differ in that."""
    if isinstance(machine, Mixture):
        modes = {switching_of(part) for part, _ in machine.parts}
        if len(modes) > 1:
            words = f"its boxes differ in how switches forward: say switching={' or switching='.join(sorted(modes))}"
            raise InputError([Fault("machine", words)])
        return modes.pop()
    found = described(machine)
    return found.switching if isinstance(found, MachineFile) else str(found["switching"])


def mode_of(machine: Any, switching: str | None) -> str | None:
    """How the switches forward; None for a machine that nobody knows."""
    if switching is not None or machine is None:
        return switching or "cut_through"
    if isinstance(machine, str) and machine not in machine_names():
        return None
    try:
        return switching_of(machine)
    except InputError:
        return None


def source_of(machine: Any) -> str:
    """Where it comes from, in words."""
    if isinstance(machine, Mixture):
        return "; ".join(f"{count} of {source_of(part)}" for part, count in machine.parts)
    found = described(machine)
    if not isinstance(found, MachineFile):
        return provenance(found)
    where = f"{machine.name}, " if isinstance(machine, InputFile) else ""
    return f"{where}{found.name}: {found.source}"


def expanded(machine: Any, asked: Asked) -> Expanded:
    """The network of a machine. Raises :class:`InputError`."""
    if isinstance(machine, str):
        if "domain" in asked.own:
            words = f"is for machine files, which do not say it; {machine} is what its data say"
            raise InputError([Fault("domain", words, asked.own["domain"], True)])
        return _of_name(machine, asked)
    if isinstance(machine, Mixture):
        if "boxes" in asked.own:
            words = "is for boxes of one kind: here every kind says how many, a.json*2+b.json*2"
            raise InputError([Fault("boxes", words, asked.own["boxes"], True)])
        return _of_boxes([(str(part), described(part), count) for part, count in machine.parts], asked)
    found, label = described(machine), str(machine) if isinstance(machine, InputFile) else ""
    if isinstance(found, dict) and not any(key in asked.own for key in OF_BOXES):
        with _said_of(label):
            return _as_stated(found, asked)
    count = asked.own.get("boxes") or len(asked.own.get("gpus") or (0,))
    if isinstance(found, dict) and "boxes" not in asked.own:
        count = max(count, len(found["network"].get("boxes") or ()))
    return _of_boxes([(label, found, count)], asked)


@contextmanager
def _said_of(label: str) -> Iterator[None]:
    """Within, what is wrong is said of this file."""
    try:
        yield
    except InputError as error:
        raise InputError([replace(f, path=", ".join(filter(None, (label, f.path)))) for f in error.faults]) from None


def _of_name(name: str, asked: Asked) -> Expanded:
    """The network of a machine by name."""
    tree = {key: asked.own[key] for key in OF_TREE if key in asked.own}
    gpus = asked.own.get("gpus")
    boxes = asked.own.get("boxes") or len(gpus or (0,))
    own = {} if gpus is None else {"gpus": list(gpus * (boxes if len(gpus) == 1 else 1))}
    raw = {"kind": "machine", "name": name, "boxes": boxes, **own, **tree}
    data, notes = machine_file(name), list[str]()
    for what, key in KEYS_OF_SPECS:
        numbers = asked.numbers.get(what)
        if numbers:
            kinds = [row.kind for row in data.stated(what)]
            raw[key] = {kind: value for word, value in numbers.items() for kind in meant(word, kinds)}
            notes += data.with_numbers(what, numbers, asked.called[what])[1]
    return Expanded(raw, notes)


def _as_stated(raw: dict[str, Any], asked: Asked) -> Expanded:
    """A machine file's network, with other numbers by class of link."""
    network, notes = dict(raw["network"]), list[str]()
    for what in WHATS:
        if not asked.numbers.get(what):
            continue
        links = classed_links(raw)
        rows = [Stated(link["class"], link.get(what)) for link in links]
        values, told = with_asked(rows, asked, what)
        notes += told
        network["links"] = [link | {what: value} for link, value in zip(network["links"], values, strict=True)]
    if not notes and raw.get("intervals"):
        network["intervals"] = _intervals(raw["intervals"], raw.get("classes"))
    return Expanded(network, notes)


def _intervals(by_class: Any, kinds: Any) -> list[dict[str, Any]]:
    """A machine file's intervals by class of link, as a network has them: by the numbers of its links. Raises
    :class:`InputError`."""
    if not isinstance(by_class, dict) or not isinstance(kinds, list):
        raise InputError([Fault("intervals", "must be an object of classes of links, and classes a list, one a link")])
    found = []
    for kind, ends in by_class.items():
        links = [i for i, other in enumerate(kinds) if other == kind]
        if not links or not isinstance(ends, dict):
            raise InputError([Fault(f"intervals.{kind}", "must be of a class of links: its latency and bandwidth")])
        found.append({"links": links, "latency": ends.get("latency"), "bandwidth": ends.get("bandwidth")})
    return found


def _data(parts: Sequence[tuple[str, Described, int]], asked: Asked) -> tuple[list[MachineFile], list[str]]:
    """Every kind of box as data, with the numbers asked for and the switches that boxes share. Raises
    :class:`InputError`."""
    several = sum(count for *_, count in parts) > 1
    every = list(dict.fromkeys(kind for _, part, _ in parts for kind in _classes(part)))
    with _said_of(", ".join(dict.fromkeys(label for label, *_ in parts))):
        _demand_classes(asked, every)
    notes: list[str] = []
    data: list[MachineFile] = []
    for label, part, _ in parts:
        kinds = _classes(part)
        own = replace(asked, numbers={what: concerning(asked.numbers.get(what, {}), kinds) for what in WHATS})
        with _said_of(label):
            made, told = _with_numbers(part, own) if isinstance(part, MachineFile) else box_of(part, own, several)
        data.append(_of_domain(made, asked.own["domain"], label) if "domain" in asked.own else made)
        notes += [note for note in told if note not in notes]
    if several:
        data = _with_shared(data, [isinstance(part, MachineFile) for _, part, _ in parts], asked)
    return data, notes


def _of_domain(data: MachineFile, boxes: int, label: str) -> MachineFile:
    """Boxes whose NVSwitches are those of one NVLink domain of so many boxes. Raises :class:`InputError`."""
    linked = (link for link in data.links if (link.kind or data.inner).casefold() in CALLED["nvlink"])
    shared = {end for link in linked for end in (link.src, link.dst)} & {*data.switches, *data.domain_switches}
    if not shared:
        words = "there is no switch of NVLinks that boxes could share (--nvlinks switch where a file leaves it open)"
        raise InputError([Fault(", ".join(filter(None, (label, "domain"))), words, boxes, True)])
    own = tuple(name for name in data.switches if name not in shared)
    return MachineFile(**dict(data) | {"domain": boxes, "domain_switches": tuple(sorted(shared)), "switches": own})


def _of_boxes(parts: Sequence[tuple[str, Described, int]], asked: Asked) -> Expanded:
    """Boxes, each with the name of its file, and what is above them. Raises :class:`InputError`."""
    if (several := sum(count for *_, count in parts)) > MOST_NODES:
        raise InputError([Fault("machine", f"{several} boxes; at most {MOST_NODES} nodes are supported")])
    data, notes = _data(parts, asked)
    boxes = [Box(one, one.gpus) for one, (*_, count) in zip(data, parts, strict=True) for _ in range(count)]
    try:
        cluster = Cluster(_cut(boxes, asked), _above(asked, data), "this machine")
        if (nodes := cluster.size()[0]) > MOST_NODES:
            raise ValueError(f"about {nodes} nodes; at most {MOST_NODES} are supported")
        return Expanded(_raw(cluster), notes)
    except ValueError as error:
        key, _, words = str(error).partition(": ")
        known = key in OF_BOXES and bool(words)
        raise InputError([Fault(key, words) if known else Fault("machine", str(error))]) from None


def _classes(part: Described) -> list[str]:
    if isinstance(part, MachineFile):
        return list(dict.fromkeys(row.kind for row in part.stated("bandwidth")))
    box = part.get("box")
    if box is None:
        return list(dict.fromkeys(map(str, part.get("classes") or ())))
    return list(dict.fromkeys([*(link["class"] for link in box["links"]), "NET"]))


def _demand_classes(asked: Asked, kinds: list[str]) -> None:
    """Raises :class:`InputError` for a class of links that no box has."""
    for what in WHATS:
        for word in asked.numbers.get(what, {}):
            if word:
                try:
                    meant(word, kinds)
                except ValueError as error:
                    raise InputError([Fault(asked.called[what][word], str(error))]) from None


def _with_numbers(data: MachineFile, asked: Asked) -> tuple[MachineFile, list[str]]:
    """Boxes as data with the numbers asked for. Raises :class:`InputError`."""
    notes: list[str] = []
    for what in WHATS:
        if asked.numbers.get(what):
            try:
                data, told = data.with_numbers(what, asked.numbers[what], asked.called[what])
            except ValueError as error:
                raise InputError([Fault(what, str(error))]) from None
            notes += told
    return data, notes


def _with_shared(data: list[MachineFile], as_data: Sequence[bool], asked: Asked) -> list[MachineFile]:
    """The boxes with the switches that they share: their own where all are alike in that, else one for all ports, or
    with rails one for every port of a name (by their order where names differ)."""
    if all(as_data) and len({one.shared_switches for one in data}) == 1:
        return data
    bare = next((one.name for one in data if not one.shared_switches), None)
    if bare is not None:
        raise InputError([Fault("machine", f"{bare} shows no way out of its box: boxes cannot be joined")])
    rails = asked.own.get("rails")
    if not (rails if rails is not None else asked.own.get("leaf") is not None):
        return [_shared_as(one, dict.fromkeys(one.shared_switches, "net")) for one in data]
    largest = max((one.shared_switches for one in data), key=len)
    by_name = all(set(one.shared_switches) <= set(largest) for one in data)
    return [
        _shared_as(one, {s: f"rail{(largest.index(s) if by_name else k)}" for k, s in enumerate(one.shared_switches)})
        for one in data
    ]


def _shared_as(data: MachineFile, called: Mapping[str, str]) -> MachineFile:
    """The box with other names for the switches that it shares."""
    uplinks = tuple(
        MachineLink(**dict(link) | {end: called.get(getattr(link, end), getattr(link, end)) for end in ("src", "dst")})
        for link in data.uplinks
    )
    own = {"uplinks": uplinks, "shared_switches": tuple(dict.fromkeys(called.values()))}
    return MachineFile(**dict(data) | own)


def _cut(boxes: list[Box], asked: Asked) -> list[Box]:
    """The boxes with as many ranks as asked for. Raises ``ValueError``."""
    gpus = asked.own.get("gpus")
    if gpus is None:
        return boxes
    every = tuple(gpus) * (len(boxes) if len(gpus) == 1 else 1)
    smallest = min((box.data for box in boxes), key=lambda one: one.gpus)
    if len(every) == len(boxes):
        for box, size in zip(boxes, every, strict=True):
            sizes((size,), 1, box.data)
    else:
        sizes(every, len(boxes), smallest)
    return [Box(box.data, size) for box, size in zip(boxes, every, strict=True)]


def _above(asked: Asked, data: Sequence[MachineFile]) -> Above:
    """What is above the boxes. Raises ``ValueError``."""
    own = {key: asked.own.get(key) for key in OF_TREE}
    if own["leaf"] is None:
        free = {"rails"} if any(kind.kind == "NET" for one in data for kind in one.uplinks) or len(data) > 1 else set()
        demand_no_tree({key: own[key] for key in OF_TREE[1:] if key not in free})
        return Above()
    return Above(own["leaf"], own["rails"] is not False, own["oversubscription"] or 1.0, own["spines"])


def _raw(cluster: Cluster) -> dict[str, Any]:
    """The network as an instance holds it, link by link."""
    names, rows = cluster.built()
    ranks = sum(cluster.sizes)
    links: list[dict[str, Any]] = []
    for (u, v), rate, delay, group in zip(rows.ends, rows.bandwidth, rows.latency, rows.group, strict=True):
        own = {} if group is None else {"group": group}
        links.append({"src": u, "dst": v, "bandwidth": rate, "latency": delay, **own})
    raw: dict[str, Any] = {
        "kind": "links",
        "nodes": len(names),
        "names": names,
        "switches": [*range(ranks, len(names))],
    }
    raw["links"] = links
    ends = iter(range(ranks))
    raw["boxes"] = [[next(ends) for _ in range(size)] for size in cluster.sizes]
    domains = {box.data.domain for box in cluster.boxes}
    if cluster.several and max(domains) > 1 and len(domains) == 1:
        raw["domain"] = domains.pop()
    if rows.abilities:
        able = sorted(rows.abilities.items())
        raw["abilities"] = [{"switch": v, **one.model_dump(mode="json", exclude_none=True)} for v, one in able]
    return raw


def unknown_classes(machine: str, asked: Asked) -> Iterator[Fault]:
    """What is wrong with the numbers by class for a machine by name."""
    kinds = _classes(machine_file(machine))
    for what in WHATS:
        for word in asked.numbers.get(what, {}):
            called = asked.called[what][word]
            if not word:
                words = f"is of one class of links: say {what}=CLASS=…, the classes of {machine} are {', '.join(kinds)}"
                yield Fault(called, words)
                continue
            try:
                meant(word, kinds)
            except ValueError:
                yield Fault(called, f"no such class of links; {machine} has {', '.join(kinds)}")
