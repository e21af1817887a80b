"""What the formats of plain graphs (CSV, node-link JSON, GraphML) share: nodes by name or number, links with numbers
and units, faults by where a link stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from synth.csvfile import MOST_FAULTS
from synth.errors import Fault, InputError
from synth.exchange.machines import units
from synth.exchange.machines.machine import Builder, Hints, Machine, listed, too_large

LINK = "link"
SWITCH_WORDS = ("switch", "nvswitch", "router", "nic")
RANK_WORDS = ("rank", "gpu", "npu", "host", "node", "accelerator")


@dataclass(frozen=True)
class Row:
    """One link as it stands: where, its ends (names), what it says (texts or numbers)."""

    where: str
    src: str
    dst: str
    values: Mapping[str, Any]
    both: bool = False


def machine_of(
    rows: Iterable[Row],
    nodes: Mapping[str, bool | None],
    hints: Hints,
    name: str,
    format_name: str,
    source: str,
    faults: list[Fault],
) -> Machine:
    """The machine of these links. ``nodes``: all nodes in their order, and whether each is a switch (None: not said).

    Raises :class:`InputError` with ``faults`` (found before) and all found here.
    """
    rows = list(rows)
    switches = _switches(nodes, hints, faults)
    faults += too_large(len(nodes), sum(2 if row.both else 1 for row in rows))
    if faults and len(nodes) > 10**6:
        raise InputError(faults)
    built = Builder()
    number = {node: built.switch(node) if node in switches else built.rank(node) for node in nodes}
    for row in rows:
        if len(faults) >= MOST_FAULTS:
            raise InputError([*faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])
        if row.src == row.dst:
            faults.append(Fault(row.where, "goes from a node to itself", row.src, True))
            continue
        values = _numbers(row, faults)
        kind = str(row.values.get("class") or LINK)[:40]
        group = row.values.get("group")
        built.link(
            number[row.src], number[row.dst], kind, values.get("bandwidth"), values.get("latency"),
            group=None if group in (None, "") else str(group)[:100], both=row.both,
        )  # fmt: skip
    if not any(nodes.values()) and not hints.switches:
        built.assumed.append("every node is a rank (--switches names those that are not)")
    if faults:
        raise InputError(faults)
    return built.machine(name, format_name, source)


def _switches(nodes: Mapping[str, bool | None], hints: Hints, faults: list[Fault]) -> set[str]:
    found = {node for node, is_switch in nodes.items() if is_switch}
    for node in hints.switches:
        if node not in nodes:
            faults.append(Fault("--switches", f"no such node; there are {listed(nodes)}", node, True))
        found.add(node)
    return found


def _numbers(row: Row, faults: list[Fault]) -> dict[str, float]:
    readers: tuple[tuple[str, Callable[[str], float]], ...] = (("bandwidth", units.rate), ("latency", units.duration))
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


def value_of(value: Any, reader: Callable[[str], float]) -> float:
    """A number in SI, or a text with a unit. Raises ``ValueError``."""
    if isinstance(value, str):
        return reader(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number or a text with a unit")
    if isinstance(value, int) and abs(value) > 10**30:
        raise ValueError("is beyond any machine")
    return reader(repr(value))


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
