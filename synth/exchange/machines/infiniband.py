"""InfiniBand subnets as the tools of OpenSM and infiniband-diags print them.

* ``ibnetdiscover``: a stanza a node (``Switch``, ``Ca``), a line a port that ends with ``4xHDR``; ``-p``: a line a
  cable.
* ``iblinkinfo``: a line a port, ``4X 25.78125 Gbps``, below ``CA:`` and ``Switch:``; with ``-l`` a line a cable.
* ``opensm-subnet.lst``, ``ibdiagnet2.lst``: a line a cable, ``PHY=4x SPD=25``.

Every cable stands twice, once a side; it is known by the ports at its ends, and has the lower of the rates that its
sides state. Hosts are called by the first word of their
adapter's description (``n1 mlx5_0``), switches by theirs, or by their number where a description is none. Routers and
the aggregation nodes of switches (SHARP) are left out. Latencies are nowhere in these files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from synth.errors import Fault, InputError
from synth.exchange.machines import ib_rates
from synth.exchange.machines.fabrics import Cable, Fabric, Found, fabric, words_of
from synth.exchange.machines.machine import NO_HINTS, Hints, listed
from synth.text.csv import MOST_FAULTS

LONGEST_LINE = 1000  # characters of one that are read
_PORT = r"\[(?P<{0}>\d{{1,4}})\](?:\[ext \d+\])?(?:\([0-9a-fA-F]+\))?"
_STANZA = re.compile(r'(?P<kind>Switch|Ca|Rt)\s+\d+\s+"(?P<id>[^"]{1,80})"\s*(?:#\s*"(?P<name>[^"]*)")?')
_STANZA_PORT = re.compile(rf'{_PORT.format("port")}\s+"(?P<id>[^"]{{1,80}})"{_PORT.format("far")}\s*(?:#(?P<rest>.*))?')
_QUOTED, _WIDE = re.compile(r'"([^"]*)"'), re.compile(r"\b(\d{1,2}[xX])\s?([A-Z]DR(?:10)?)\b")
_LINE = re.compile(
    r"(?P<kind>CA|SW|RT)\s+(?P<lid>\d+)\s+(?P<port>\d{1,4})\s+0x(?P<id>[0-9a-fA-F]+)\s+(?P<wide>\d{1,2}x)\s+"
    r"(?P<speed>\w+)\s+-\s+(?P<kind2>CA|SW|RT)\s+(?P<lid2>\d+)\s+(?P<far>\d{1,4})\s+0x(?P<id2>[0-9a-fA-F]+)\s*"
    r"\(\s*'(?P<name>.*)'\s+-\s+'(?P<name2>.*)'\s*\)"
)
_HEADING = re.compile(r"(?P<kind>CA|Switch|RT|Router):\s*(?:0x[0-9a-fA-F]+\s+)?(?P<name>.*?):?\s*")
_STATE = re.compile(
    r"\s*(?:0x(?P<id>[0-9a-fA-F]+)\s+)?(?:\"(?P<name>[^\"]*)\"\s+)?(?P<lid>\d+)\s+(?P<port>\d{1,4})\[[^\]]*\]\s*"
    r"==\(\s*(?P<wide>\d{1,2}[xX])\s+(?P<speed>[\d.]+)\s+Gbps\s*(?:\((?P<named>\w+)\)\s*)?Active\s*/\s*LinkUp\s*\)==>\s*"
    r"(?:0x(?P<id2>[0-9a-fA-F]+)\s+)?(?P<lid2>\d+)\s+(?P<far>\d{1,4})\[[^\]]*\]\s*\"(?P<name2>[^\"]*)\".*"
)
_SIDE = (
    r"\{{\s*(?P<kind{0}>CA|SW|RT)\s+Ports:\w+\s+SystemGUID:\w+\s+NodeGUID:(?P<id{0}>\w+)\s[^{{}}]*"
    r"(?:\{{(?P<name{0}>[^{{}}]*)\}})?\s*LID:\w+\s+PN:(?P<port{0}>\w+)\s*\}}"
)
_DUMPED = re.compile(
    rf"\s*{_SIDE.format('')}\s*{_SIDE.format('2')}\s*PHY=(?P<wide>\w+)\s+LOG=(?P<log>\w+)\s+SPD=(?P<speed>[\w.?]+)\s*"
)
_KINDS = {"ca": "host", "sw": "switch", "switch": "switch", "rt": "router", "router": "router"}
_ADAPTER = re.compile(r"\s(?:HCA-|mlx|hfi|ib|bnxt|roce)")  # in the description of one
_NAMELESS = re.compile(r"Mellanox|^MT[0-9]{4,5}\b")  # a description that no host has set
_MANAGED = re.compile(r"[^;]*;([^:]+):(.*)")  # what a managed switch says: MF0;leaf1:MQM8700/U1


@dataclass
class _Subnet:
    """Nodes by their number, cables by the ports at their ends, with the lines where both stand."""

    kinds: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    cables: dict[tuple[tuple[str, int], tuple[str, int]], tuple[float, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)  # lines of two sides that state two rates

    def node(self, number: str, kind: str | None, name: str | None) -> str:
        """The node's number, and what is known of it from then on."""
        if kind is not None:
            self.kinds.setdefault(number, _KINDS[kind.lower()])
        if name and name.strip():
            self.names.setdefault(number, name.strip()[:100])
        return number

    def cable(self, a: tuple[str, int], b: tuple[str, int], width: str, speed: str, line: int) -> None:
        """A cable, from one of its sides."""
        try:
            rate = ib_rates.rate(width, speed)
        except ValueError as error:
            self.fault(line, str(error), f"{width} {speed}")
            return
        key = (a, b) if a <= b else (b, a)
        before, at = self.cables.setdefault(key, (rate, line))
        if before != rate:
            self.unlike.append(f"{at} and {line}")
            self.cables[key] = (min(before, rate), at)

    def fault(self, line: int, words: str, cell: str | None = None) -> None:
        """Something wrong in a line."""
        self.faults.append(Fault(f"line {line}", words, cell, cell is not None))
        if len(self.faults) >= MOST_FAULTS:
            raise InputError([*self.faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])


class Dump:
    """One tool's text as a format of topology: the two functions that every reader has."""

    def __init__(self, name: str, words: str, mark: re.Pattern[str], reader: Callable[[str, _Subnet], None]) -> None:
        """``mark``: what stands in such a text alone; ``reader`` puts what its lines say into a subnet."""
        self.name, self.words, self._mark, self._read = name, words, mark, reader

    def looks_like(self, text: str) -> bool:
        """Whether a text holds a line that only this tool prints."""
        return self._mark.search(text) is not None

    def read(self, text: str, name: str, hints: Hints = NO_HINTS) -> Fabric:
        """The machine: hosts are ranks. Raises :class:`InputError` with every fault by its line."""
        subnet = _Subnet()
        self._read(text, subnet)
        if subnet.faults:
            raise InputError(subnet.faults)
        found = _found(subnet)
        return fabric(found, name, self.name, words_of(self.words, found, found.cables))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((n, line[:LONGEST_LINE]) for n, line in enumerate(text.splitlines(), 1))


def _stanzas(text: str, subnet: _Subnet) -> None:
    """ibnetdiscover's text."""
    own = None
    for n, line in _lines(text):
        line = line.strip()
        if stanza := _STANZA.match(line):
            own = subnet.node(stanza["id"], stanza["kind"], stanza["name"])
        elif port := _STANZA_PORT.fullmatch(line):
            rest = port["rest"] or ""
            far, wide = port["id"], _WIDE.search(_QUOTED.sub("", rest))
            described = _QUOTED.search(rest)
            kind = {"S": "sw", "H": "ca", "R": "rt"}.get(far[:1])
            subnet.node(far, kind, described and described[1])
            if own is None or wide is None:
                subnet.fault(n, "no node stands above this port" if own is None else "states no rate such as 4xHDR")
                continue
            subnet.cable((own, int(port["port"])), (far, int(port["far"])), wide[1], wide[2], n)
        elif cable := _LINE.fullmatch(line):
            _two_sided(cable, subnet, n, 10)
        elif line.startswith(("[", '"')):
            subnet.fault(n, 'is no line of ibnetdiscover\'s: [port] "node"[port] # … 4xHDR', line[:60])


def _states(text: str, subnet: _Subnet) -> None:
    """iblinkinfo's text. Nodes are known by their LID, the one number that both sides of a line show."""
    kind = name = None
    for n, line in _lines(text):
        if "==(" not in line:
            heading = _HEADING.fullmatch(line.strip())
            kind, name = (heading["kind"], heading["name"]) if heading else (kind, name)
        elif found := _STATE.fullmatch(line):
            one_line = found["name"] is not None
            own = subnet.node(found["lid"], None if one_line else kind, found["name"] if one_line else name)
            far = subnet.node(found["lid2"], None, found["name2"])
            speed = found["named"] or found["speed"]
            subnet.cable((own, int(found["port"])), (far, int(found["far"])), found["wide"], speed, n)
        elif "Down" not in line and "Active" in line:
            subnet.fault(n, "is no line of iblinkinfo's: LID port[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> …")


def _dumped(text: str, subnet: _Subnet) -> None:
    """The text of OpenSM's and ibdiagnet's list files."""
    for n, line in _lines(text):
        if cable := _DUMPED.fullmatch(line):
            if cable["log"].upper().startswith("ACT"):
                _two_sided(cable, subnet, n, 16)
        elif line.lstrip().startswith("{"):
            subnet.fault(n, "is no line of a subnet's list: { CA … PN:01 } { SW … PN:02 } PHY=4x LOG=ACT SPD=25")


def _two_sided(cable: re.Match[str], subnet: _Subnet, line: int, base: int) -> None:
    """A line that shows both ends of a cable; numbers of ports are to this ``base``."""
    port, far = ("port", "far") if base == 10 else ("port", "port2")
    ends = []
    for kind, number, name, place in (("kind", "id", "name", port), ("kind2", "id2", "name2", far)):
        try:
            at = int(cable[place][:6], base)
        except ValueError:
            subnet.fault(line, "must be the number of a port", cable[place])
            return
        ends.append((subnet.node(cable[number], cable[kind], cable[name]), at))
    subnet.cable(ends[0], ends[1], cable["wide"], cable["speed"], line)


def _found(subnet: _Subnet) -> Found:
    """Hosts, switches and cables by what they are called."""
    found = Found(assumed=[ib_rates.SOURCE])
    if subnet.unlike:
        words = f"cables whose sides state two rates (lines {listed(subnet.unlike)}) carry the lower"
        found.assumed.append(words)
    for number in {node: None for key in subnet.cables for node, _ in key}:
        subnet.kinds.setdefault(number, "host" if _ADAPTER.search(subnet.names.get(number, "")) else "switch")
    dropped = _no_hosts(subnet)
    if dropped:
        words = listed(subnet.names.get(node, node) for node in sorted(dropped))
        found.left_out.append(f"{words}: no hosts (routers, aggregation nodes of switches)")
    called = _called({node: kind for node, kind in subnet.kinds.items() if node not in dropped}, subnet.names)
    for node, name in called.items():
        (found.hosts if subnet.kinds[node] == "host" else found.switches)[name] = None
    kept = ((a, b, rate) for ((a, _), (b, _)), (rate, _) in subnet.cables.items() if not {a, b} & dropped)
    for a, b, rate in kept:
        if called[a] == called[b]:
            found.left_out.append(f"a cable of {called[a]} that leads back to it")
            continue
        host = next((node for node in (a, b) if subnet.kinds[node] == "host"), "")
        adapter = subnet.names.get(host, "").partition(" ")[2].strip()
        found.cables.append(Cable((called[a], called[b]), rate, adapter=adapter))
    return found


def _no_hosts(subnet: _Subnet) -> set[str]:
    """Routers and the aggregation nodes of switches."""
    aggregate = {node for node, name in subnet.names.items() if "Aggregation Node" in name}
    return aggregate | {node for node, kind in subnet.kinds.items() if kind == "router"}


def _called(kinds: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """What each node is called. Adapters of one host share its name; switches of one name carry their number."""
    called = {}
    for node, kind in kinds.items():
        described = names.get(node, "")
        first = described.partition(" ")[0]
        managed = _MANAGED.fullmatch(described)
        if kind == "host":
            called[node] = f"host-{node}" if not first or _NAMELESS.search(described) else first
        else:
            called[node] = managed[1] if managed else described
    times = Counter(name for node, name in called.items() if kinds[node] != "host")
    hosts = {name for node, name in called.items() if kinds[node] == "host"}
    again = (
        node
        for node, name in called.items()
        if kinds[node] != "host" and (times[name] > 1 or name in hosts or not name)
    )
    return called | {node: f"{called[node]} {node}".strip() for node in again}


ibnetdiscover = Dump(
    "ibnetdiscover",
    "ibnetdiscover",
    re.compile(
        r'(?m)^[ \t]*(?:(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[SHR]-'
        r"|(?:CA|SW|RT)[ \t]+\d+[ \t]+\d+[ \t]+0x[0-9a-fA-F]+[ \t]+\d+x[ \t])"
    ),
    _stanzas,
)
iblinkinfo = Dump(
    "iblinkinfo",
    "iblinkinfo",
    re.compile(r'(?m)^[ \t]*(?:0x[0-9a-fA-F]+[ \t]+)?(?:"[^"\n]*"[ \t]+)?\d+[ \t]+\d+\[[^\]\n]*\][ \t]*==\('),
    _states,
)
subnet_list = Dump(
    "subnet-lst", "a subnet's list (OpenSM, ibdiagnet)",
    re.compile(r"(?m)^[ \t]*\{[ \t]*(?:CA|SW|RT)[ \t]+Ports:\w+\s+SystemGUID:"), _dumped,
)  # fmt: skip
