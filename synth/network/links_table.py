"""Tables of links: ``src,dst[,bandwidth][,latency][,group][,class]``, one direction a row.

The one reader of such tables, for ``links=`` of every family and for ``synth import``. Nodes are numbers from 0 on (all
up to the largest exist) or names, in the order in which they first stand. Numbers are in bytes/s and seconds, or carry
their unit (``25GB/s``, ``0.7us``); a header may carry one for its column: ``bandwidth (GB/s)``. Links of one group take
turns. Rows with the same ends are parallel links. What is left empty is unknown, never made up.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from synth.errors import Fault, InputError
from synth.text import amounts
from synth.text.csv import MOST_FAULTS, wrong_columns
from synth.text.visible import visible

COLUMNS = ("src", "dst", "bandwidth", "latency", "group", "class")
HEADER = "src,dst[,bandwidth][,latency][,group][,class]"
LINK = "link"  # the class of links that name none
MOST_NODES, MOST_LINKS = 65_536, 4_000_000
MOST_COLUMNS = 64  # that are looked at: there are six
TRIED = 2 * MOST_FAULTS  # lines of a table that are read whole before the rest is looked at
LONGEST_NAME = 100  # characters
SWITCH_WORDS = ("switch", "nvswitch", "router", "nic")
RANK_WORDS = ("rank", "gpu", "npu", "host", "node", "accelerator")
FARTHEST = 1e9  # of a position
Position = tuple[float, float]
FEW = 3  # examples that a note names
_COMMENTS, _QUOTED = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)+"), re.compile(r'\s*"([^"]*)"\s*')
_COLUMN = re.compile(r"\s*([a-z]+)\s*(?:[\[(]\s*([A-Za-zµμ/]+)\s*[\])])?\s*")


@dataclass(frozen=True)
class Row:
    """One link as it stands: where, its ends (names), what it says (texts or numbers); ``both``: and the link back."""

    where: str
    src: str
    dst: str
    values: Mapping[str, Any]
    both: bool = False


@dataclass(frozen=True)
class TableLink:
    """One directed link between numbered nodes: bytes/s and seconds, None where the table does not say; ``where`` it
    stands, ``kind`` its class."""

    where: str
    src: int
    dst: int
    bandwidth: float | None = None
    latency: float | None = None
    group: str | None = None
    kind: str = LINK


@dataclass(frozen=True)
class LinksTable:
    """Nodes by name, links in the table's order; ``switches``: names of nodes that a graph says are some;
    ``positions`` (x, y) of all nodes where a graph says where each is drawn."""

    names: tuple[str, ...]
    links: tuple[TableLink, ...]
    switches: tuple[str, ...] = ()
    positions: tuple[Position, ...] = ()

    @property
    def numbered(self) -> bool:
        """Whether the nodes have no names but their numbers."""
        return all(name == str(number) for number, name in enumerate(self.names))

    def parallel(self) -> list[str]:
        """Which rows are parallel links, in words; empty where there are none."""
        count = Counter((link.src, link.dst) for link in self.links)
        found = [f"{self.names[u]} -> {self.names[v]} ({n})" for (u, v), n in count.items() if n > 1]
        more = f", … ({len(found)} pairs)" if len(found) > FEW else ""
        return [f"rows with the same ends are parallel links: {', '.join(found[:FEW])}{more}"] if found else []

    def completed(self, bandwidth: float | None, latency: float | None) -> LinksTable:
        """The table with these numbers where it has none. Raises :class:`InputError` for what is then still unknown,
        and for a number that no link needs."""
        given = {"bandwidth": bandwidth, "latency": latency}
        faults = []
        for key, value in given.items():
            without = [link.where for link in self.links if getattr(link, key) is None]
            if without and value is None:
                example = "bandwidth=25GB/s" if key == "bandwidth" else "latency=0.7us"
                places = list(dict.fromkeys(without))
                where = ", ".join(places[:FEW]) + (f", … ({len(without):,} links)" if len(places) > FEW else "")
                faults.append(Fault(key, f"is unknown for {where}; fill the column {key}, or give {example} for all"))
            elif not without and value is not None:
                faults.append(Fault(key, f"every link has its own {key}: leave it out", value, True))
        if faults:
            raise InputError(faults)
        filled = (
            TableLink(
                link.where, link.src, link.dst,
                bandwidth if link.bandwidth is None else link.bandwidth,
                latency if link.latency is None else link.latency,
                link.group, link.kind,
            )
            for link in self.links
        )  # fmt: skip
        return replace(self, links=tuple(filled))

    def raw(self) -> dict[str, Any]:
        """The raw ``links`` network of an instance file, with ``names`` where nodes have some."""
        links = []
        for link in self.links:
            group = {} if link.group is None else {"group": link.group}
            own = {key: getattr(link, key) for key in ("bandwidth", "latency") if getattr(link, key) is not None}
            links.append({"src": link.src, "dst": link.dst, **own, **group})
        names = {} if self.numbered else {"names": list(self.names)}
        drawn = {"positions": [list(place) for place in self.positions]} if self.positions else {}
        return {"kind": "links", "nodes": len(self.names), **names, **drawn, "links": links}


def too_large(nodes: int, links: int) -> list[Fault]:
    """What is to be said of a machine of this size before it is built."""
    if nodes > MOST_NODES or links > MOST_LINKS:
        words = f"at most {MOST_NODES:,} nodes and {MOST_LINKS:,} links are supported"
        return [Fault("", f"{nodes:,} nodes and {links:,} links; {words}")]
    return []


def table_of(rows: Iterable[Row], nodes: Iterable[str], faults: list[Fault]) -> LinksTable:
    """The table of these links; ``nodes`` are all nodes in their order. Raises :class:`InputError` with ``faults``
    (found before) and all found here."""
    rows, names = list(rows), list(nodes)
    faults += too_large(len(names), sum(2 if row.both else 1 for row in rows))
    if faults and len(names) > 10**6:
        raise InputError(faults)
    number = {name: index for index, name in enumerate(names)}
    links: list[TableLink] = []
    for row in rows:
        if len(faults) >= MOST_FAULTS:
            raise InputError([*faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])
        if row.src == row.dst:
            faults.append(Fault(row.where, "goes from a node to itself", row.src, True))
            continue
        values = _numbers(row, faults)
        kind, group = visible(str(row.values.get("class") or LINK)[:40]), row.values.get("group")
        named = None if group in (None, "") else visible(str(group)[:100])
        ends = [(number[row.src], number[row.dst])]
        ends += [ends[0][::-1]] if row.both else []
        links += [
            TableLink(row.where, u, v, values.get("bandwidth"), values.get("latency"), named, kind) for u, v in ends
        ]
    shown = tuple(map(visible, names))
    if len(set(shown)) < len(shown):
        faults.append(Fault("", "two nodes have the same name once unprintable characters are replaced"))
    if faults:
        raise InputError(faults)
    return LinksTable(shown, tuple(links))


def value_of(value: Any, reader: Callable[[str], float]) -> float:
    """A number in SI, or a text with a unit. Raises ``ValueError``."""
    if isinstance(value, str):
        return reader(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number or a text with a unit")
    if isinstance(value, int) and abs(value) > 10**30:
        raise ValueError("is beyond any machine")
    return reader(repr(value))


def read_csv(text: str) -> LinksTable:
    """The table in a text of CSV. Raises :class:`InputError` with every fault by its line."""
    header, lines = _lines_of(text)
    faults: list[Fault] = []
    rows: list[Row] = []
    for number, cells in lines:
        if len(faults) >= MOST_FAULTS:
            raise InputError([*faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])
        where = f"line {number}"
        if len(cells) != len(header):
            faults.append(Fault(where, f"has {len(cells)} cells, the header {len(header)}"))
            continue
        values = {
            column: f"{cell.strip()}{unit}" if cell.strip() and _bare(cell) else cell.strip()
            for (column, unit), cell in zip(header, cells, strict=True)
        }
        rows.append(_row(where, values, faults))
        if len(rows) == TRIED:
            _demand_sense(rows)
    return _numbered(rows, faults)


def _demand_sense(rows: list[Row]) -> None:
    """Refuse a long table by its beginning, where that is wrong throughout."""
    try:
        _numbered(rows, [])
    except InputError as error:
        if len(error.faults) >= MOST_FAULTS:
            raise


def _lines_of(text: str) -> tuple[list[tuple[str, str]], list[tuple[int, list[str]]]]:
    """Names and units of the columns, and the numbers and cells of the lines below. Raises :class:`InputError`."""
    try:
        text = _without_comments(text)
        sign = _separator(text.lstrip("\n").partition("\n")[0])
        reader = csv.reader(io.StringIO(text), delimiter=sign, skipinitialspace=True, strict=True)
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"not valid CSV: {error}") from None
    header = [_column(cell) for cell in (lines[0][1][:MOST_COLUMNS] if lines else [])]
    names = [column for column, _ in header]
    wrong = {column for column in names if column not in COLUMNS or names.count(column) > 1}
    if wrong or not {"src", "dst"} <= set(names) or len(lines) < 2:
        words = wrong_columns(names, COLUMNS, ("src", "dst"))
        raise InputError(f"{words}needs a header line {HEADER} and at least one link")
    return header, lines[1:]


def from_graph(graph: Any) -> LinksTable:
    """The table of a NetworkX graph: an undirected edge a link each way, a multigraph's edges parallel links; edge
    attributes ``bandwidth``, ``latency``, ``group``, ``class`` where given, and the node attributes of
    :func:`is_switch` and, if all have them, of :func:`position`. Nodes that are the numbers 0 to n-1 keep them, others
    stand in the graph's order."""
    faults: list[Fault] = []
    rows = [
        Row(f"edge {tail}-{head}", str(tail), str(head), _given(data), both=not graph.is_directed())
        for tail, head, data in graph.edges(data=True)
    ]
    names = list(map(str, graph.nodes))
    if len(set(names)) < len(names):
        raise InputError("two nodes of the graph have the same name as text")
    switches = tuple(
        visible(str(node)) for node, data in graph.nodes(data=True) if is_switch(data, f"node {node}", faults)
    )
    places = {str(node): position(data, f"node {node}", faults) for node, data in graph.nodes(data=True)}
    numbers = [str(number) for number in range(len(names))]
    order = numbers if set(numbers) == set(names) else names
    drawn = [place for name in order if (place := places[name]) is not None]
    positions = tuple(drawn) if len(drawn) == len(order) else ()
    return replace(table_of(rows, order, faults), switches=switches, positions=positions)


def position(values: Mapping[str, Any], where: str, faults: list[Fault]) -> Position | None:
    """Where a node's attributes say that it is drawn: ``pos`` (two numbers, or a text with a comma), or ``x`` and
    ``y``; None where they do not."""
    given = values.get("pos")
    if given is None and values.get("x") is not None and values.get("y") is not None:
        given = (values["x"], values["y"])
    if given is None:
        return None
    parts = given.split(",") if isinstance(given, str) else given
    try:
        x, y = (float(part) for part in parts)
    except (TypeError, ValueError):
        x = y = math.nan
    if not all(abs(part) <= FARTHEST for part in (x, y)):
        faults.append(Fault(f"{where}, pos", "must be two numbers, such as 1.5,-2", str(given)[:100], True))
        return None
    return x, y


def is_switch(values: Mapping[str, Any], where: str, faults: list[Fault]) -> bool | None:
    """Whether a node's attributes make it a switch: ``switch`` (true, false), or ``kind``/``type`` in words."""
    flag = values.get("switch")
    if flag is not None:
        text = str(flag).lower()
        if text in ("true", "1", "false", "0"):
            return text in ("true", "1")
        faults.append(Fault(f"{where}, switch", "must be true or false", flag, True))
    for key in ("kind", "type"):
        word = values.get(key)
        if word is None:
            continue
        if str(word).lower() in SWITCH_WORDS:
            return True
        if str(word).lower() in RANK_WORDS:
            return False
        known = ", ".join((*RANK_WORDS, *SWITCH_WORDS))
        faults.append(Fault(f"{where}, {key}", f"must be one of {known}", word, True))
    return None


def from_frame(frame: Any) -> LinksTable:
    """The table of a pandas frame with the same columns; missing values are unknown. Raises :class:`InputError`."""
    columns = list(map(str, frame.columns))
    if not {"src", "dst"} <= set(columns) <= set(COLUMNS) or not len(frame):
        raise InputError(f"a table of links has the columns {HEADER} and at least one row")
    faults: list[Fault] = []
    rows = []
    for index, values in enumerate(frame.to_dict("records")):
        given = _given({str(key): value for key, value in values.items()})
        for end in ("src", "dst"):
            if isinstance(given.get(end), float) and given[end].is_integer():
                given[end] = int(given[end])  # a column with a gap is of floats
            if isinstance(given.get(end), float):
                faults.append(Fault(f"row {index}, {end}", "nodes are whole numbers or names", given[end], True))
        rows.append(_row(f"row {index}", {**given, **{e: str(given.get(e, "")) for e in ("src", "dst")}}, faults))
    return _numbered(rows, faults)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is missing, numbers of numpy as Python's."""
    found = {key: values[key] for key in COLUMNS if key in values}
    plain_values = {key: value.item() if hasattr(value, "item") else value for key, value in found.items()}
    return {key: value for key, value in plain_values.items() if value is not None and value == value}


def _row(where: str, values: dict[str, Any], faults: list[Fault]) -> Row:
    ends = str(values.pop("src")), str(values.pop("dst"))
    for end, node in zip(("src", "dst"), ends, strict=True):
        if not node:
            faults.append(Fault(f"{where}, {end}", "is missing"))
        elif len(node) > LONGEST_NAME:
            faults.append(Fault(f"{where}, {end}", f"is longer than {LONGEST_NAME} characters", node, True))
    return Row(where, *ends, values)


def _numbered(rows: list[Row], faults: list[Fault]) -> LinksTable:
    """The table of rows whose nodes are all numbers or all names."""
    if any(_whole(node) for row in rows for node in (row.src, row.dst)):
        rows = _by_number(rows, faults)
    nodes = dict.fromkeys(node for row in rows for node in (row.src, row.dst))
    if all(map(_whole, nodes)):
        last = max(map(int, nodes), default=0)
        nodes = dict.fromkeys(str(v) for v in range(last + 1)) if last < MOST_NODES else nodes
    return table_of(rows, nodes, faults)


def _by_number(rows: list[Row], faults: list[Fault]) -> list[Row]:
    """Where one node is a number, all must be, small enough and each written in one way."""
    found = []
    for row in rows:
        for end, node in (("src", row.src), ("dst", row.dst)):
            if node and not _whole(node):
                faults.append(Fault(f"{row.where}, {end}", "nodes are numbers or names, not both", node, True))
            elif node and int(node) >= MOST_NODES:
                faults.append(Fault(f"{row.where}, {end}", f"must be less than {MOST_NODES:,}", node, True))
        found.append(Row(row.where, _plain_number(row.src), _plain_number(row.dst), row.values))
    return found


def _whole(node: str) -> bool:
    return node.isascii() and node.isdigit() and len(node) < 19


def _plain_number(node: str) -> str:
    return str(int(node)) if _whole(node) else node


def _numbers(row: Row, faults: list[Fault]) -> dict[str, float]:
    readers: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("bandwidth", amounts.rate),
        ("latency", amounts.duration),
    )
    found: dict[str, float] = {}
    for key, reader in readers:
        value = row.values.get(key)
        if value is None or value == "":
            continue
        try:
            found[key] = value_of(value, reader)
        except ValueError as error:
            faults.append(Fault(f"{row.where}, {key}", str(error), value, True))
    return found


def _bare(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def columns_of(text: str) -> list[tuple[str, str]]:
    """Names and units of the header line of a text."""
    line = _without_comments(text).lstrip("\n").partition("\n")[0]
    cells = line.split(_separator(line), MOST_COLUMNS)[:MOST_COLUMNS]
    return [_column(_QUOTED.sub(r"\1", cell)) for cell in cells]


def _without_comments(text: str) -> str:
    """The text with the comments before its header blank, so that lines keep their numbers."""
    return _COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), text.lstrip("\ufeff"), count=1)


def _separator(line: str) -> str:
    """What parts the columns of a header line: a comma, or what tables have where numbers have commas."""
    return next((sign for sign in (",", ";", "\t") if sign in line), ",")


def _column(cell: str) -> tuple[str, str]:
    """A header's name and unit; the name as it stands where it is of no such form."""
    found = _COLUMN.fullmatch(cell.lower() if "(" not in cell and "[" not in cell else cell)
    if found is None:
        return cell.strip(), ""
    name, unit = found.groups(default="")
    return name, unit
