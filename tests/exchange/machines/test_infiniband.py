"""ibnetdiscover, iblinkinfo and lists of subnets: one random fabric printed by each is read back as it is."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from exchange.machines.reading import refused

from synth.exchange.machines import ib_rates
from synth.exchange.machines.formats import FORMATS, read, read_text
from synth.exchange.machines.machine import Machine

FIELD = Path(__file__).parents[4] / "shared/data/field/12-fabric-files-not-read"
SPEEDS = {"QDR": ("10.0", "10", 8e9), "EDR": ("25.78125", "25", 25e9), "HDR": ("53.125", "50", 50e9),
          "NDR": ("106.25", "100", 100e9)}  # fmt: skip  # as iblinkinfo and the lists say them; bits/s of a lane
Cable = tuple[str, int, str, int, int, str]  # two nodes with their ports, lanes, generation


class Net:
    """Hosts with adapters, switches, and the cables between their ports."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.hosts = [(f"n{h}", f"mlx5_{a}") for h in range(draw.randint(1, 5)) for a in range(draw.randint(1, 3))]
        self.switches = [f"leaf{s}" if s else "MF0;spine0:MQM8700/U1" for s in range(draw.randint(1, 4))]
        self.ports: Counter[str] = Counter()
        self.cables: list[Cable] = []
        for host in self.hosts:
            self._join(" ".join(host), draw.choice(self.switches), draw)
        for a, b in zip(self.switches, self.switches[1:], strict=False):
            for _ in range(draw.randint(1, 3)):
                self._join(a, b, draw)

    def _join(self, a: str, b: str, draw: random.Random) -> None:
        self.ports.update((a, b))
        self.cables.append((a, self.ports[a], b, self.ports[b], draw.choice((1, 4)), draw.choice(list(SPEEDS))))

    @property
    def nodes(self) -> list[str]:
        return [*(" ".join(host) for host in self.hosts), *self.switches]

    def kind(self, node: str, host: str, switch: str) -> str:
        return switch if node in self.switches else host

    def guid(self, node: str) -> str:
        return f"{self.nodes.index(node) + 17:016x}"

    def lid(self, node: str) -> int:
        return self.nodes.index(node) + 1

    def sides(self, node: str) -> list[Cable]:
        """The cables of a node, it first."""
        turned = [(b, q, a, p, lanes, speed) for a, p, b, q, lanes, speed in self.cables]
        return [cable for cable in (*self.cables, *turned) if cable[0] == node]


def ibnetdiscover(net: Net) -> str:
    lines = ["#", "# Topology file: generated on Mon Jan  1 00:00:00 2024", "#"]
    for node in net.nodes:
        tag, short = net.kind(node, "Ca", "Switch"), net.kind(node, "H", "S")
        lines += ["", "vendid=0x2c9", f"{tag.lower()}guid=0x{net.guid(node)}"]
        lines.append(f'{tag}\t{len(net.sides(node))} "{short}-{net.guid(node)}"\t\t# "{node}" base port 0 lid 1 lmc 0')
        for _, port, far, other, lanes, speed in net.sides(node):
            own = f"({net.guid(node)[-6:]}) " if short == "H" else ""
            there = f'"{net.kind(far, "H", "S")}-{net.guid(far)}"[{other}]'
            lines.append(f'[{port}]{own}\t{there}\t\t# "{far}" lid {net.lid(far)} {lanes}x{speed}')
    return "\n".join(lines) + "\n"


def ibnetdiscover_p(net: Net) -> str:
    lines = []
    for node in net.nodes:
        for _, port, far, other, lanes, speed in net.sides(node):
            ends = [
                (net.kind(one, "CA", "SW"), net.lid(one), at, net.guid(one)) for one, at in ((node, port), (far, other))
            ]
            near, there = (f"{kind} {lid:5} {at:2} 0x{guid}" for kind, lid, at, guid in ends)
            lines.append(f"{near} {lanes}x {speed} - {there} ( '{node}' - '{far}' )")
    return "\n".join(lines) + "\n"


def iblinkinfo(net: Net) -> str:
    lines = []
    for node in net.nodes:
        lines.append(f"CA: {node}:" if node not in net.switches else f"Switch: 0x{net.guid(node)} {node}:")
        guid = "" if node in net.switches else f"0x{net.guid(node)}"
        for _, port, far, other, lanes, speed in net.sides(node):
            state = f"==( {lanes}X      {SPEEDS[speed][0]} Gbps Active/  LinkUp)==>"
            lines.append(
                f'{guid:>24} {net.lid(node):6} {port:4}[  ] {state} {net.lid(far):7} {other:4}[  ] "{far}" ( )'
            )
        lines.append(
            f'{guid:>24} {net.lid(node):6}   99[  ] ==(                Down/ Polling)==>             [  ] "" ( )'
        )
    return "\n".join(lines) + "\n"


def subnet_list(net: Net) -> str:
    lines = []
    for node in net.nodes:
        for _, port, far, other, lanes, speed in net.sides(node):
            ends = [
                f"{{ {net.kind(one, 'CA', 'SW')} Ports:01 SystemGUID:{net.guid(one)} NodeGUID:{net.guid(one)} "
                f"PortGUID:{net.guid(one)} VenID:000002C9 DevID:1003 Rev:0 {{{one}}} LID:{net.lid(one):x} PN:{at:x} }}"
                for one, at in ((node, port), (far, other))
            ]
            lines.append(f"{' '.join(ends)} PHY={lanes}x LOG=ACT SPD={SPEEDS[speed][1]}")
    return "\n".join(lines) + "\n"


def wanted(net: Net) -> Counter[tuple[str, str, str, float]]:
    """Links by the ends' names, class and rate: cables between two switches of one rate are one link."""
    short = {node: "spine0" if node.startswith("MF0") else node.partition(" ")[0] for node in net.nodes}
    single: Counter[tuple[str, str, str, float]] = Counter()
    for a, _, b, _, lanes, speed in net.cables:
        kind = "UP" if a in net.switches else "NET"
        single[short[a], short[b], kind, lanes * SPEEDS[speed][2] / 8] += 1
    links: Counter[tuple[str, str, str, float]] = Counter()
    for (a, b, kind, rate), times in single.items():
        for u, v in ((a, b), (b, a)):
            links[u, v, kind, rate * times if kind == "UP" else rate] += 1 if kind == "UP" else times
    return links


def links_of(machine: Machine) -> Counter[tuple[str, str, str, float | None]]:
    return Counter((machine.names[e.src], machine.names[e.dst], e.kind, e.bandwidth) for e in machine.links)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("ibnetdiscover", ibnetdiscover),
        ("ibnetdiscover", ibnetdiscover_p),
        ("iblinkinfo", iblinkinfo),
        ("subnet-lst", subnet_list),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_fabric_is_read_back(name: str, printed: object, seed: int) -> None:
    net = Net(seed)
    text = printed(net)  # type: ignore[operator]
    assert [one.name for one in FORMATS if one.looks_like(text)] == [name]
    machine = read_text(text, "fabric.txt")
    assert links_of(machine) == wanted(net)
    assert [machine.names[v] for v in machine.ranks] == list(dict.fromkeys(host for host, _ in net.hosts))
    assert {machine.names[v] for v in machine.switches} == {
        s if s != net.switches[0] else "spine0" for s in net.switches
    }
    through = read_text("\n".join(f"admin1: {line}" for line in text.splitlines()), "fabric.txt")
    assert through.links == machine.links


@pytest.mark.parametrize(
    ("width", "speed", "gbytes"),
    [("4x", "HDR", 25), ("4X", "25.78125", 12.5), ("4", "ndr", 50), ("4x", "XDR", 100), ("1x", "SDR", 0.25),
     ("12x", "QDR", 12), ("4x", "FDR", 75 / 11), ("4x", "FDR10", 5), ("2x", "106.25", 25), ("4x", "10.0", 4)],
)  # fmt: skip
def test_rates_are_those_of_data(width: str, speed: str, gbytes: float) -> None:
    assert ib_rates.rate(width, speed) == pytest.approx(gbytes * 1e9, rel=1e-12)


def test_every_fault_has_its_line() -> None:
    one = 'Ca 1 "H-1" # "n1 mlx5_0"\n[1](11) "S-1"[1] # lid 1 lmc 0 "leaf" lid 3 4xHDR\n'
    other = 'Switch 2 "S-1" # "leaf" base port 0\n[1] "H-1"[1](11) # "n1 mlx5_0" lid 1 4xEDR\n'
    machine = read_text(one + other, "net.txt")
    assert {link.bandwidth for link in machine.links} == {12.5e9}
    assert "cables whose sides state two rates (lines 2 and 4) carry the lower" in machine.assumed
    assert "line 1: no node stands above this port" in refused(one.partition("\n")[2] + other)
    assert "line 3: states no rate such as 4xHDR" in refused(f'{one}[2] "S-1"[2] # "leaf"\n')
    assert "line 2 = '4x YDR': speed must be one of SDR" in refused(one.replace("4xHDR", "4xYDR"))
    assert "line 2 = '3x HDR': width must be one of 1x, 2x" in refused(one.replace("4xHDR", "3xHDR"))
    assert "line 2 = '4X 11.5': speed must be one of" in refused(iblinkinfo(Net(1)).replace("106.25", "11.5"))
    assert "line 2: is no line of iblinkinfo's" in refused(iblinkinfo(Net(1)).replace("4X", "four", 1))
    assert "holds no host" in refused('Switch 2 "S-1" # "a"\n[1] "S-2"[1] # "b" lid 1 4xEDR\n')
    assert "line 1: is no line of a subnet's list" in refused(subnet_list(Net(1)).replace("PHY=", "PHI="))


def test_what_is_no_host_is_left_out() -> None:
    text = (
        'Switch 3 "S-1" # "leaf"\n'
        '[1] "H-1"[1](11) # "n1 HCA-1" lid 1 4xHDR\n[2] "H-2"[1](12) # "n2 HCA-1" lid 2 4xHDR\n'
        '[41] "H-9"[1](19) # "Mellanox Technologies Aggregation Node" lid 9 4xHDR\n'
        '[3] "H-3"[1](13) # "MT4123 ConnectX6   Mellanox Technologies" lid 4 4xHDR\n'
    )
    machine = read_text(text, "fabric.txt")
    assert [machine.names[v] for v in machine.ranks] == ["n1", "n2", "host-H-3"]
    assert machine.left_out[0].startswith("Mellanox Technologies Aggregation Node: no hosts")


@pytest.mark.skipif(not FIELD.is_dir(), reason="needs ../shared/data/field")
def test_the_files_of_the_field() -> None:
    machine = read(FIELD / "ibnetdiscover.txt")
    assert links_of(machine) == Counter(
        {(u, v, "NET", 25e9): 1 for h in ("n1", "n2") for u, v in ((h, "leaf1"), ("leaf1", h))}
    )
    machine = read(FIELD / "iblinkinfo.txt")
    ends = [pair for host in ("n1", "n3") for pair in ((host, "sw1"), ("sw1", host))]
    assert links_of(machine) == Counter({(u, v, "NET", 12.5e9): 1 for u, v in ends})
    assert set(product(machine.names, repeat=2)) >= {
        (machine.names[e.src], machine.names[e.dst]) for e in machine.links
    }
