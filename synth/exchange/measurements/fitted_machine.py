"""The machine file of fitted numbers: ranks on one switch, or an imported machine whose classes get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines.file import FORMAT, checked, read_machine_file
from synth.exchange.machines.machine import NET
from synth.exchange.measurements.fitting import Fit, Interval
from synth.text.input_file import InputFile
from synth.text.quantities import shown
from synth.text.untrusted import number, whole

KIND = "LINK"
MOST_RANKS = 4096
SWITCH_HOPS = 2


def star(fit: Fit, ranks: int, name: str, logs: Sequence[str]) -> dict[str, Any]:
    """The data of a machine file: ``ranks`` ranks, two of them joined directly, more by one switch, half the latency
    on each side of it. Raises :class:`InputError` where a number is unknown, or for too many ranks."""
    latency, bandwidth = demanded(fit, KIND)
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError([Fault("--ranks", f"must be 2 to {MOST_RANKS} for a machine of one switch", ranks, True)])
    hops = 1 if ranks == 2 else SWITCH_HOPS
    own = {"bandwidth": bandwidth.value, "latency": latency.value / hops}
    pairs = [(0, 1)] if hops == 1 else [(rank, ranks) for rank in range(ranks)]
    links = [{"src": a, "dst": b, **own} for pair in pairs for a, b in (pair, pair[::-1])]
    names = [f"rank{rank}" for rank in range(ranks)] + ["switch"] * (hops - 1)
    assumed = ["a message takes latency + bytes / bandwidth (alpha-beta)"]
    if hops > 1:
        assumed.append("every rank has one link each way to one switch without limits of its own")
    return {
        "format": FORMAT,
        "name": name,
        "source": f"synth fit {' '.join(logs)}",
        "given": [in_words(KIND, latency, bandwidth)],
        "assumed": assumed,
        "unknown": [],
        "left_out": [],
        "switching": "cut_through",
        "classes": [KIND] * len(links),
        "intervals": {KIND: _ends(latency, bandwidth, hops)},
        "network": {
            "kind": "links",
            "nodes": len(names),
            "names": names,
            "switches": [ranks] * (hops - 1),
            "links": links,
        },
    }


def with_classes(file: InputFile, fits: Mapping[str, Fit], logs: Sequence[str]) -> dict[str, Any]:
    """The data of an imported machine with the fitted numbers for classes of links. A fit is that of a path between
    two ranks: its latency is shared by the links of the class on the shortest path between ranks that uses the class,
    after the links of other classes there. Raises :class:`InputError`."""
    raw = checked(read_machine_file(file), str(file))
    kinds, links = _links(raw, str(file))
    unknown = [kind for kind in fits if kind not in kinds]
    if unknown:
        known = ", ".join(dict.fromkeys(kinds))
        raise InputError([Fault("LOG", f"no such class of links; the machine has {known}", kind, True)
                          for kind in unknown])  # fmt: skip
    given, intervals = list(raw["given"]), dict(raw.get("intervals") or {})
    of_box = _rows_of_box(raw)
    for kind in sorted(fits, key=lambda one: _hops(raw, kinds, links, one).total()):
        latency, bandwidth = demanded(fits[kind], kind)
        path = _hops(raw, kinds, links, kind)
        mine = path.pop(kind, 1)
        others = sum(
            count * next(float(link["latency"]) for link, name in zip(links, kinds, strict=True) if name == other)
            for other, count in path.items()
        )
        ends = [max(end - others, 0.0) / mine for end in latency]
        for link, name in [*zip(links, kinds, strict=True), *of_box]:
            if name == kind:
                link["latency"], link["bandwidth"] = ends[0], bandwidth.value
        intervals[kind] = {"latency": ends[1:], "bandwidth": [bandwidth.low, bandwidth.high]}
        given.append(in_words(kind, latency, bandwidth))
    source = f"{raw['source']}; synth fit {' '.join(logs)}"
    return {**raw, "source": source, "given": given, "intervals": intervals}


def _rows_of_box(raw: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The links and ports of the one box that a machine file is made of, with their classes."""
    box = raw.get("box") or {"links": [], "ports": []}
    return [*((link, link["class"]) for link in box["links"]), *((port, NET) for port in box["ports"])]


def demanded(fit: Fit, kind: str) -> tuple[Interval, Interval]:
    """Latency and bandwidth. Raises :class:`InputError` saying which logs would tell what is unknown."""
    faults = []
    if fit.latency is None:
        faults.append(Fault(kind, "the logs tell no latency: add one of small messages (osu_latency, sendrecv_perf)"))
    if fit.bandwidth is None:
        faults.append(Fault(kind, "the logs tell no bandwidth: add one of large messages (osu_bw, sendrecv_perf)"))
    if fit.latency is None or fit.bandwidth is None:
        raise InputError(faults)
    return fit.latency, fit.bandwidth


def in_words(kind: str, latency: Interval, bandwidth: Interval) -> str:
    """Both numbers with their intervals."""
    words = [f"{shown(one.value, unit)} ({shown(one.low, unit)} to {shown(one.high, unit)})"
             for one, unit in ((latency, "s"), (bandwidth, "bytes/s"))]  # fmt: skip
    return f"{kind}: latency {words[0]}, bandwidth {words[1]}, intervals of 95 %"


def log_name(path: str) -> str:
    """How a machine file names a log: without its folder."""
    return Path(path).name


def _ends(latency: Interval, bandwidth: Interval, hops: int) -> dict[str, list[float]]:
    return {"latency": [latency.low / hops, latency.high / hops], "bandwidth": [bandwidth.low, bandwidth.high]}


def _links(raw: dict[str, Any], source: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Classes and links of a machine file, as many of one as of the other. Raises :class:`InputError`."""
    kinds, links = raw.get("classes"), raw["network"].get("links")
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise InputError([Fault("classes", "must be a list of texts")], source)
    if not isinstance(links, list) or len(links) != len(kinds):
        raise InputError([Fault("network.links", f"must be a list of {len(kinds)} links, one a class")], source)
    try:
        nodes = whole(raw["network"], "nodes", 1, 2**20)
        switches = raw["network"].get("switches", [])
        if not isinstance(switches, list) or not all(isinstance(v, int) and 0 <= v < nodes for v in switches):
            raise ValueError("switches must be node numbers")
        for link in links:
            if not isinstance(link, dict):
                raise ValueError("a link must be an object")
            whole(link, "src", 0, nodes - 1)
            whole(link, "dst", 0, nodes - 1)
            number(link, "latency", 0.0, 1e6)
    except ValueError as error:
        raise InputError([Fault("network", str(error))], source) from None
    return list(kinds), links


class _Path(dict[str, int]):
    """How many links of every class a path has."""

    def total(self) -> int:
        """The number of its links."""
        return sum(self.values())


def _hops(raw: dict[str, Any], kinds: Sequence[str], links: Sequence[dict[str, Any]], kind: str) -> _Path:
    """The links, by class, of the shortest path between two ranks that uses the class; of one such link alone where
    no such path is."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    for link, name in zip(links, kinds, strict=True):
        if not graph.has_edge(link["src"], link["dst"]) or name == kind:
            graph.add_edge(link["src"], link["dst"], kind=name)
    switches = set(raw["network"].get("switches", []))
    edge = next((link["src"], link["dst"]) for link, name in zip(links, kinds, strict=True) if name == kind)
    into = _nearest(graph.reverse(copy=False), edge[0], switches, edge[1])
    out = _nearest(graph, edge[1], switches, edge[0])
    if into is None or out is None:
        return _Path({kind: 1})
    whole_path = [*reversed(into), *out]
    found = _Path()
    for a, b in pairwise(whole_path):
        name = graph.edges[a, b]["kind"]
        found[name] = found.get(name, 0) + 1
    return found


def _nearest(graph: Any, start: int, switches: set[int], avoided: int) -> list[int] | None:
    """The shortest path from a node to a rank that does not go through another node."""
    seen, queue = {start, avoided}, [[start]]
    while queue:
        path = queue.pop(0)
        if path[-1] not in switches:
            return path
        for node in graph.successors(path[-1]):
            if node not in seen:
                seen.add(node)
                queue.append([*path, node])
    return None
