"""A network of hosts with boxes in their place: the GPUs of each host's box become ranks, its ports take the cables.

A host's cables and its box's ports are paired by name (``mlx5_0`` on both sides), or in order where there are as many.
Where the network's file says only that a host is on a switch (Slurm), every port leads there. A pair of both numbers
carries the smaller one.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synth.errors import Fault, InputError
from synth.exchange.machines.fabrics import Fabric
from synth.exchange.machines.machine import Link, Machine, Port, listed
from synth.network.links_table import MOST_NODES, too_large
from synth.text.hostlists import expanded
from synth.text.quantities import counted


@dataclass(frozen=True)
class _Cable:
    """A host's link out and the one back, by their places in the network, with the adapter's name."""

    out: int
    back: int
    adapter: str


def files_by_host(words: Sequence[str], network: Machine) -> dict[str, Path]:
    """The box's file of each host by ``FILE`` (all hosts) or ``HOSTS=FILE``. Raises :class:`InputError`."""
    if len(network.boxes) == 1:
        words = f"{network.name} is one box itself, no network of hosts; boxes=N joins several such boxes"
        raise InputError([Fault("--box", words)])
    hosts = [network.names[v] for v in network.ranks]
    known = set(hosts)
    files: dict[str, Path] = {}
    for word in words:
        before, equals, after = word.partition("=")
        named = hosts
        if equals and not Path(word).is_file():
            try:
                named = expanded(before, MOST_NODES)
            except ValueError as error:
                raise InputError([Fault("--box", f"hosts {error}", before, True)]) from None
        strange = [host for host in named if host not in known]
        if strange:
            raise InputError([Fault("--box", f"no such host; there are {listed(hosts)}", listed(strange), True)])
        files |= dict.fromkeys(named, Path(after if named is not hosts else word))
    return files


def joined(network: Machine, boxes: Mapping[str, Machine]) -> Machine:
    """The network with these boxes, by host; hosts without one stay ranks. Raises :class:`InputError`."""
    hosts = {v: boxes[network.names[v]] for v in network.ranks if network.names[v] in boxes}
    nodes = network.nodes + sum(box.nodes - 1 for box in hosts.values())
    faults = too_large(nodes, len(network.links) + sum(len(box.links) + 2 * len(box.ports) for box in hosts.values()))
    if faults:
        raise InputError(faults)
    place, names, ranks = _placed(network, hosts)
    said: dict[str, None] = {}
    links = tuple(_links(network, hosts, place, said))
    bare = [network.names[v] for v in network.ranks if v not in hosts]
    if bare:
        said[f"hosts without a box are a rank each: {listed(bare)}"] = None
    every = [network, *{id(box): box for box in hosts.values()}.values()]
    return Machine(
        network.name, network.format, "; box: ".join(dict.fromkeys(one.source for one in every)), tuple(names),
        frozenset(range(ranks, len(names))), links, (), _texts(every, "unknown"),
        (*_texts(every, "assumed"), *said), network.switching, left_out=_texts(every, "left_out"),
        boxes=tuple(_boxes(network, hosts, place)),
        about=dict(ChainMap(*(dict(one.about) for one in every))),
    )  # fmt: skip


def _links(
    network: Machine, hosts: Mapping[int, Machine], place: Mapping[tuple[int, int | None], int], said: dict[str, None]
) -> Iterator[Link]:
    """The links of the boxes, of their cables, and the others of the network."""
    for v, box in hosts.items():
        yield from _of_box(network.names[v], box, v, place)
    cables = _cables(network, hosts)
    gone: set[int] = set()
    for v, box in hosts.items():
        for cable, ports in _paired(network, v, cables[v], box, said):
            gone |= {cable.out, cable.back}
            yield from _cabled(network, v, cable, ports, place)
    for i, link in enumerate(network.links):
        if i not in gone:
            yield replace(link, src=place[link.src, None], dst=place[link.dst, None])


def _boxes(
    network: Machine, hosts: Mapping[int, Machine], place: Mapping[tuple[int, int | None], int]
) -> Iterator[tuple[int, ...]]:
    """The ranks of every host: those of its box, or the host itself."""
    for v in network.ranks:
        yield tuple(place[v, own] for own in hosts[v].ranks) if v in hosts else (place[v, None],)


def _texts(machines: Sequence[Machine], key: str) -> tuple[str, ...]:
    """The texts of all machines under a key, each once."""
    return tuple(dict.fromkeys(text for one in machines for text in getattr(one, key)))


def _placed(network: Machine, hosts: Mapping[int, Machine]) -> tuple[dict[tuple[int, int | None], int], list[str], int]:
    """The new number of each node, by its number in the network and in its box (None: of the network), the names, and
    how many are ranks, which come first."""
    ranks: list[tuple[int, int | None]] = []
    switches: list[tuple[int, int | None]] = []
    for v in range(network.nodes):
        if v in hosts:
            ranks += [(v, own) for own in hosts[v].ranks]
            switches += [(v, own) for own in sorted(hosts[v].switches)]
        else:
            (switches if v in network.switches else ranks).append((v, None))
    order = [*ranks, *switches]
    names = [network.names[v] if own is None else f"{network.names[v]}/{hosts[v].names[own]}" for v, own in order]
    return {node: i for i, node in enumerate(order)}, names, len(ranks)


def _of_box(host: str, box: Machine, v: int, place: Mapping[tuple[int, int | None], int]) -> Iterator[Link]:
    for link in box.links:
        group = None if link.group is None else f"{host}/{link.group}"
        yield replace(link, src=place[v, link.src], dst=place[v, link.dst], group=group)


def _cables(network: Machine, hosts: Mapping[int, Machine]) -> dict[int, list[_Cable]]:
    """The cables of these hosts, by the adapter's number. Raises :class:`InputError`."""
    adapters = network.adapters if isinstance(network, Fabric) else ("",) * len(network.links)
    out: dict[int, list[int]] = {v: [] for v in range(network.nodes)}
    back: dict[int, list[int]] = {v: [] for v in range(network.nodes)}
    for i, link in enumerate(network.links):
        out[link.src].append(i)
        back[link.dst].append(i)
    uneven = [network.names[v] for v in hosts if len(out[v]) != len(back[v])]
    if uneven:
        raise InputError([Fault("--box", "has not as many links out as back", listed(uneven), True)])
    return {
        v: sorted((_Cable(i, j, adapters[i]) for i, j in zip(out[v], back[v], strict=True)), key=_by_number)
        for v in hosts
    }


def _paired(
    network: Machine, v: int, cables: list[_Cable], box: Machine, said: dict[str, None]
) -> list[tuple[_Cable, list[Port]]]:
    """Each cable of a host with the ports that take it. Raises :class:`InputError`."""
    by_name = {port.name: port for port in box.ports}
    names = [cable.adapter for cable in cables]
    if names and set(names) <= set(by_name) and len(set(names)) == len(names):
        rest = [name for name in by_name if name not in names]
        said |= {f"ports without a cable carry nothing: {listed(rest)}": None} if rest else {}
        return [(cable, [by_name[cable.adapter]]) for cable in cables]
    if len(cables) == len(box.ports):
        said["a host's cables and its box's ports are paired in order, by number: their names differ"] = None
        return [(cable, [port]) for cable, port in zip(cables, box.ports, strict=True)]
    if names == [""] and network.links[cables[0].out].bandwidth is None and box.ports:
        said["every port of a box leads to its host's switch"] = None
        return [(cables[0], list(box.ports))]
    of_cables, of_ports = _counted(names, "cable"), _counted(list(by_name), "port")
    words = f"has {of_cables}, its box {of_ports}: they are paired by name, or in order"
    raise InputError([Fault("--box", f"{network.names[v]} {words}")])


def _counted(names: Sequence[str], what: str) -> str:
    return counted(len(names), what) + (f" ({listed(names)})" if any(names) else "")


def _by_number(cable: _Cable) -> list[tuple[int, str]]:
    """A key that puts ``mlx5_10`` after ``mlx5_9``."""
    return [(int(part[:18]) if part.isdigit() else -1, part) for part in re.split(r"([0-9]+)", cable.adapter)]


def _cabled(
    network: Machine, v: int, cable: _Cable, ports: Sequence[Port], place: Mapping[tuple[int, int | None], int]
) -> Iterator[Link]:
    """The links of a cable at these ports."""
    for port in ports:
        for i in (cable.out, cable.back):
            link = network.links[i]
            rates = [rate for rate in (link.bandwidth, port.bandwidth) if rate is not None]
            far = link.dst if link.src == v else link.src
            if (far, None) not in place:
                words = "a cable between two hosts that have boxes is not read"
                raise InputError([Fault("--box", words, f"{network.names[v]}-{network.names[far]}", True)])
            ends = (place[v, port.node], place[far, None])
            yield replace(
                link,
                src=ends[0] if link.src == v else ends[1],
                dst=ends[1] if link.src == v else ends[0],
                bandwidth=min(rates, default=None),
                latency=port.latency if link.latency is None else link.latency,
            )
