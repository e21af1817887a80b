"""The box of a machine file (``synth-machine/1``) as data, with the numbers that a person adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines.file import checked
from synth_models.fabric.problem.box_data import MachineFile, MachineLink
from synth_models.fabric.problem.link_classes import Stated, What, changed, concerning, meant

MOST_NODES, MOST_FAULTS = 65_536, 10
WHATS: tuple[What, ...] = ("bandwidth", "latency")


@dataclass(frozen=True)
class Asked:
    """What is said beside the machine: how many boxes, what is above them (keys as of ``synth make``), and numbers by
    class of link, with how each was typed."""

    own: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[What, Mapping[str, float]] = field(default_factory=dict)
    called: Mapping[What, Mapping[str, str]] = field(default_factory=dict)


def with_asked(rows: Sequence[Stated], asked: Asked, what: What) -> tuple[list[float | None], list[str]]:
    """The numbers asked for, put in. Raises :class:`InputError`."""
    called = asked.called.get(what, {})
    known = list(dict.fromkeys(row.kind for row in rows))
    for word in asked.numbers.get(what, {}):
        try:
            meant(word, known) if word else None
        except ValueError as error:
            raise InputError([Fault(called[word], str(error))]) from None
    try:
        return changed(rows, asked.numbers.get(what, {}), what, called)
    except ValueError as error:
        raise InputError([Fault(what, str(error))]) from None


def box_of(raw: dict[str, Any], asked: Asked, several: bool) -> tuple[MachineFile, list[str]]:
    """A machine file's box as data. Raises :class:`InputError` where it has none, or a number is unknown."""
    if raw.get("box"):
        _demand_one_statement(raw)
    box = raw.get("box") or _whole_box(raw, several)
    inner, out = _inside(box)
    names, switches = box["names"], set(box["switches"])
    links = [link for link in box["links"] if not {link["src"], link["dst"]} & out]
    ways_out = [link for link in box["links"] if {link["src"], link["dst"]} & out] if several else []
    ports = [port | {"class": "NET"} for port in box["ports"]] if several else []
    rows, notes = _completed([*links, *ways_out, *ports], asked)
    made = [
        MachineLink(
            src=names[row["src"] if "src" in row else row["node"]],
            dst=names[row["dst"]] if "dst" in row else _above(row),
            bandwidth=row["bandwidth"],
            latency=row["latency"],
            group=row.get("group"),
            both="node" in row,
            kind=row["class"],
        )
        for row in rows
    ]
    ranks = tuple(name for v, name in enumerate(names) if v not in switches)
    data = MachineFile(  # type: ignore[call-arg]
        name=raw["name"],
        title=raw["name"],
        source=raw["source"],
        gpus=len(ranks),
        ranks=ranks,
        switching=raw["switching"],
        switches=tuple(names[v] for v in inner),
        links=tuple(made[: len(links)]),
        shared_switches=tuple(map(_above, ports)),
        box_switches=tuple(names[v] for v in sorted(out)),
        uplinks=tuple(made[len(links) :]),
    )
    return data, notes


def _demand_one_statement(raw: Mapping[str, Any]) -> None:
    """Raise :class:`InputError` where the network has other numbers for a link of the box than the box itself: who
    changes a machine file by hand must not be told times of the old numbers."""
    names, box = raw["network"].get("names"), raw["box"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError([Fault("network.names", "must be a list of texts")])
    if len(raw["network"].get("boxes") or ()) > 1:
        names = [name.partition("/")[2] for name in names]
    stated: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for link in box["links"]:
        key = box["names"][link["src"]], box["names"][link["dst"]], link["class"]
        stated.setdefault(key, []).append(link)
    faults = [
        Fault(f"network.links[{i}]", words)
        for i, link in enumerate(classed_links(raw))
        if (words := _against(link, names, stated))
    ]
    if faults:
        raise InputError(faults[:MOST_FAULTS])


def _against(
    link: Mapping[str, Any], names: Sequence[str], stated: Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]
) -> str:
    """What is wrong with a link of the network beside those that the box states; empty if nothing."""
    for v in (link.get("src"), link.get("dst")):
        if not isinstance(v, int) or not 0 <= v < len(names):
            return f"must lead from and to nodes below {len(names)}"
    src, dst = names[link["src"]], names[link["dst"]]
    same = stated.get((src, dst, link["class"]), [])
    if not same or any(all(link[what] == one.get(what, link[what]) for what in WHATS) for one in same):
        return ""
    return f"box.links state other numbers for {src} to {dst}: change both, or say bandwidth={link['class']}=…"


def _above(port: Mapping[str, Any]) -> str:
    """A name for the switch that a port leads to."""
    return f"{port['name']} above"


def _completed(rows: list[dict[str, Any]], asked: Asked) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows with the numbers asked for, and what that did. Raises :class:`InputError` for what is still unknown."""
    notes, faults = list[str](), list[Fault]()
    for what in WHATS:
        stated = [Stated(row["class"], row.get(what), row.get("lanes", 1)) for row in rows]
        numbers = concerning(asked.numbers.get(what, {}), [row.kind for row in stated])
        if all(row.value is not None for row in stated):
            numbers.pop("", None)
        found, told = with_asked(stated, replace(asked, numbers={what: numbers}), what)
        notes += told
        rows = [row | {what: value} for row, value in zip(rows, found, strict=True)]
        gone = list(dict.fromkeys(row["class"] for row in rows if row[what] is None))
        if gone:
            words = f"unknown for {', '.join(gone)}: say {what}={','.join(f'{kind}=…' for kind in gone)}"
            faults.append(Fault(what, words))
    if faults:
        raise InputError(faults)
    return rows, notes


def _whole_box(raw: dict[str, Any], several: bool) -> dict[str, Any]:
    """A machine file's whole network as one box that has no way out. Raises :class:`InputError`."""
    network, there = raw["network"], len(raw["network"].get("boxes") or ())
    if several or there > 1:
        if there > 1:
            words = f"the machine file is of {there} boxes and does not say what one is: import one box without --boxes"
        else:
            words = "the machine file shows no way out of its box: import it with its NICs (--only NV,PIX,NET)"
        raise InputError([Fault("boxes", words)])
    nodes, names = network.get("nodes"), network.get("names")
    if not isinstance(nodes, int) or not 0 < nodes <= MOST_NODES:
        raise InputError([Fault("network.nodes", f"must be 1 to {MOST_NODES}", nodes, True)])
    box = {"names": names or list(map(str, range(nodes))), "switches": network.get("switches") or []}
    box |= {"links": classed_links(raw), "ports": [{"node": 0, "name": "none"}]}
    whole: dict[str, Any] = checked(raw | {"box": box}, "")["box"]
    return whole


def classed_links(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The links of a machine file, each with its ``class``. Raises :class:`InputError`."""
    kinds, links = raw.get("classes"), raw["network"].get("links")
    if not isinstance(kinds, list) or not isinstance(links, list) or len(kinds) != len(links):
        raise InputError([Fault("classes", "must be a list of texts, one a link: it says what each number is of")])
    faults = [
        Fault(f"network.links[{i}]", "must be an object with numbers bandwidth (> 0) and latency")
        for i, link in enumerate(links)
        if not isinstance(link, dict)
        or not _is_number(link.get("bandwidth"), 1e-3)
        or not _is_number(link.get("latency"), 0)
    ]
    if faults:
        raise InputError(faults[:MOST_FAULTS])
    return [link | {"class": str(kind)} for link, kind in zip(links, kinds, strict=True)]


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= 1e18


def _inside(box: Mapping[str, Any]) -> tuple[list[int], set[int]]:
    """The switches that lead from rank to rank, in order, and those that only lead out of the box."""
    near: dict[int, set[int]] = {v: set() for v in range(len(box["names"]))}
    for link in box["links"]:
        near[link["src"]].add(link["dst"])
        near[link["dst"]].add(link["src"])
    out: set[int] = set()
    stack = [v for v in box["switches"] if len(near[v]) < 2]
    while stack:
        node = stack.pop()
        if node in out:
            continue
        out.add(node)
        for other in near[node]:
            near[other].discard(node)
            if other in box["switches"] and other not in out and len(near[other]) < 2:
                stack.append(other)
    return [v for v in box["switches"] if v not in out], out
