"""Instances of the mlfm family: a machine MLFM(d), the servers of a job, who sends to whom, and what has failed.

Ids count from 0. A leaf switch is ``(layer, column)`` with ``layer < d`` and ``column <= d``; a server is
``(layer, column, slot)`` with ``slot < d``; a spine switch is the unordered pair of columns it joins, in all layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, TypeGuard

import numpy as np
from pydantic import Field

from synth.arrays import IntArray
from synth.errors import Fault
from synth.instance import Instance, Part, Unit

MAX_TRANSFERS = 4_000_000  # of a job whose every transfer is stored on its own
MAX_COUNT = 10_000  # transfers of one pair of servers

Whole = Annotated[int, Field(ge=0)]
Leaf = tuple[Whole, Whole]
Spine = tuple[Whole, Whole]
Server = tuple[Whole, Whole, Whole]


class Block(Part):
    """The servers ``(i, j, k)`` with ``i < layers``, ``j < columns``, ``k < servers``: n, l and m of the paper."""

    layers: Annotated[int, Field(ge=1)]
    columns: Annotated[int, Field(ge=1)]
    servers: Annotated[int, Field(ge=1)]


class FailedLink(Part):
    """The cable between a leaf and a spine: both of its directions are gone."""

    leaf: Leaf
    spine: Spine


class Pair(Part):
    """``count`` transfers from one server to one server (the same one allowed: a turn, but no link)."""

    source: Server
    target: Server
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1


class Failed(Part):
    """Parts that do not work. A failed leaf or server takes its servers out of the job."""

    links: tuple[FailedLink, ...] = ()
    spines: tuple[Spine, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    servers: tuple[Server, ...] = ()


class MLFMInstance(Instance):
    """One all-to-all problem, whole or partial.

    Without ``demand`` all N x N transfers are to be made, a server's to itself among them, as in the paper's tables: N
    phases are the least there can be, and a transfer to itself takes its server's turn in a phase but no link.

    With ``demand``, a partial all-to-all, exactly its pairs are to be made, each ``count`` times and none named twice;
    the transfers of a server that failed are not asked for.

    The job's servers are a ``block`` or a ``subset`` (their order is the rank order), less those that failed; with a
    ``demand`` alone they are those it names, by layer, column and slot.
    ``routes``: ``minimal`` routes cross one spine (none inside a leaf); ``detour`` also allows two spines with a leaf
    of a third column between them, third to the columns of source and destination. ``bandwidth`` of a link in
    bytes/s, ``message_bytes`` that a server sends to each server, ``latency`` in seconds that starting a phase takes;
    these three only set the throughput that the check reports.
    """

    family: Literal["mlfm"] = "mlfm"
    d: Annotated[int, Field(ge=1, le=64)]
    block: Block | None = None
    subset: tuple[Server, ...] | None = None
    demand: tuple[Pair, ...] | None = None
    failed: Failed = Failed()
    routes: Literal["minimal", "detour"] = "minimal"
    bandwidth: Annotated[float, Field(gt=0), Unit("bytes/s")] = 3770.0 * 2**20
    message_bytes: Annotated[float, Field(gt=0), Unit("bytes")] = 16.0 * 2**20
    latency: Annotated[float, Field(ge=0), Unit("s")] = 0.0

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        return list(_faults(raw))

    @property
    def columns(self) -> int:
        """Columns of the machine, d + 1."""
        return self.d + 1

    @property
    def leaves(self) -> int:
        """Leaf switches of the machine, d * (d + 1); leaf ``(i, j)`` has the number ``i * (d + 1) + j``."""
        return self.d * self.columns

    @cached_property
    def spine_columns(self) -> IntArray:
        """The two columns of every spine, smaller first, shape (spines, 2); spines are numbered in this order."""
        return np.stack(np.triu_indices(self.columns, 1), axis=1).astype(np.int64)

    @cached_property
    def spine_number(self) -> IntArray:
        """The number of the spine between two columns, shape (d + 1, d + 1); -1 on the diagonal."""
        number = np.full((self.columns, self.columns), -1, dtype=np.int64)
        a, b = self.spine_columns.T
        number[a, b] = number[b, a] = np.arange(len(a))
        return number

    @cached_property
    def servers(self) -> IntArray:
        """The job's working servers in rank order, shape (N, 3): layer, column, slot."""
        if self.block is not None:
            sides = (self.block.layers, self.block.columns, self.block.servers)
            listed = np.stack(np.unravel_index(np.arange(int(np.prod(sides))), sides), axis=1)
        elif self.subset is not None:
            listed = np.array(self.subset, dtype=np.int64).reshape(-1, 3)
        else:
            named = {end for pair in self.demand or () for end in (pair.source, pair.target)}
            listed = np.array(sorted(named), dtype=np.int64).reshape(-1, 3)
        keep = np.ones(len(listed), dtype=bool)
        for layer, column in self.failed.leaves:
            keep &= (listed[:, 0] != layer) | (listed[:, 1] != column)
        for server in self.failed.servers:
            keep &= (listed != np.array(server)).any(axis=1)
        return listed[keep].astype(np.int64)

    @property
    def ranks(self) -> int:
        """N, the number of working servers."""
        return len(self.servers)

    @cached_property
    def pairs(self) -> IntArray:
        """Who sends to whom, shape (pairs, 3): sending rank, receiving rank, transfers; in this order, each pair once.

        Of a whole all-to-all these are all N x N pairs."""
        if self.demand is None:
            source, target = np.divmod(np.arange(self.ranks**2), max(1, self.ranks))
            return np.stack([source, target, np.ones_like(source)], axis=1)
        rank = {server: number for number, server in enumerate(map(tuple, self.servers.tolist()))}
        found = [
            (rank[pair.source], rank[pair.target], pair.count)
            for pair in self.demand
            if pair.source in rank and pair.target in rank
        ]
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)

    @cached_property
    def transfers(self) -> int:
        """All transfers that are to be made."""
        return self.ranks**2 if self.demand is None else int(self.pairs[:, 2].sum())

    @cached_property
    def turns(self) -> tuple[IntArray, IntArray]:
        """The transfers that every rank sends, and those that it receives, both of shape (N,)."""
        if self.demand is None:
            return (np.full(self.ranks, self.ranks),) * 2
        count = self.pairs[:, 2]
        sent, received = (np.bincount(self.pairs[:, end], count, self.ranks).astype(np.int64) for end in (0, 1))
        return sent, received

    @cached_property
    def busiest(self) -> int:
        """The most transfers that one server sends or receives; N when all send to all."""
        return int(max(turns.max(initial=0) for turns in self.turns))

    @cached_property
    def server_leaf(self) -> IntArray:
        """The number of every server's leaf, shape (N,)."""
        return self.servers[:, 0] * self.columns + self.servers[:, 1]

    def server_name(self, rank: int) -> str:
        """``layer.column.slot`` of a rank's server."""
        return ".".join(map(str, self.servers[rank].tolist()))

    def leaf_name(self, leaf: int) -> str:
        """``layer.column`` of a leaf number."""
        return f"{leaf // self.columns}.{leaf % self.columns}"

    def spine_name(self, spine: int) -> str:
        """``column-column`` of a spine number."""
        a, b = self.spine_columns[spine]
        return f"{a}-{b}"

    def link_name(self, link: int, form: tuple[str, str] = ("{leaf}→{spine}", "{spine}→{leaf}")) -> str:
        """Leaf and spine of a link number (up-links first, ``leaf * (d + 1) + column``), in its direction."""
        half = self.leaves * self.columns
        leaf, column = divmod(link % half, self.columns)
        spine = self.spine_name(int(self.spine_number[leaf % self.columns, column]))
        return form[link >= half].format(leaf=self.leaf_name(leaf), spine=spine)

    @property
    def any_link_failed(self) -> bool:
        """Whether a link, spine or leaf has failed (failed servers only shrink the job)."""
        return bool(self.failed.links or self.failed.spines or self.failed.leaves)


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """Everything that concerns several fields; parts of the wrong type are pydantic's to report."""
    block, subset, d = raw.get("block"), raw.get("subset"), raw.get("d")
    if block is None and subset is None and raw.get("demand") is None:
        kinds = "a block (layers, columns, servers), a subset (list of servers) or the servers of a demand (pairs)"
        yield Fault("block", f"is missing: the job is {kinds}")
    if block is not None and subset is not None:
        yield Fault("subset", "stands beside block: the job is one or the other")
    if not _whole(d) or not 1 <= d <= 64:
        return
    if isinstance(block, dict):
        yield from _block_faults(block, d)
    if isinstance(subset, (list, tuple)):
        if not subset:
            yield Fault("subset", "holds no server")
        yield from _list_faults("subset", subset, "server", d)
    if isinstance(raw.get("demand"), (list, tuple)):
        yield from _demand_faults(raw, d)
    if isinstance(raw.get("failed"), dict):
        yield from _failed_faults(raw["failed"], d)
        yield from _empty_fault(raw, d)


def _block_faults(block: dict[str, Any], d: int) -> Iterator[Fault]:
    for key, most, text in (("layers", d, "d"), ("columns", d + 1, "d + 1"), ("servers", d, "d")):
        if _whole(block.get(key)) and block[key] > most:
            yield Fault(f"block.{key}", f"must be <= {text} = {most}", block[key], True)


def _failed_faults(failed: dict[str, Any], d: int) -> Iterator[Fault]:
    for key, kind in (("spines", "spine"), ("leaves", "leaf"), ("servers", "server"), ("links", "link")):
        if isinstance(failed.get(key), (list, tuple)):
            yield from _list_faults(f"failed.{key}", failed[key], kind, d)


def _list_faults(path: str, items: Any, kind: str, d: int) -> Iterator[Fault]:
    first: dict[Any, int] = {}
    range_faults = {"server": _server_faults, "leaf": _leaf_faults, "spine": _spine_faults, "pair": _pair_faults}.get(
        kind, _link_faults
    )
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        key = _key(item, kind)
        if key is None:
            continue  # of the wrong shape or type
        yield from range_faults(where, item, d)
        if key in first:
            yield Fault(where, f"stands twice, first as {path}[{first[key]}]", _shown(item), True)
        first.setdefault(key, index)


def _key(item: Any, kind: str) -> Any:
    if kind == "link":
        if not isinstance(item, dict):
            return None
        leaf, spine = _key(item.get("leaf"), "leaf"), _key(item.get("spine"), "spine")
        return None if leaf is None or spine is None else (leaf, spine)
    if kind == "pair":
        if not isinstance(item, dict):
            return None
        ends = _key(item.get("source"), "server"), _key(item.get("target"), "server")
        return None if None in ends else ends
    if not isinstance(item, (list, tuple)) or len(item) != (3 if kind == "server" else 2):
        return None
    if not all(_whole(v) and v >= 0 for v in item):
        return None
    return frozenset(item) if kind == "spine" else tuple(item)


def _shown(item: Any) -> Any:
    return item if isinstance(item, dict) else list(item)


def _beyond(where: str, item: Any, names: tuple[str, ...], d: int) -> Iterator[Fault]:
    for value, name in zip(item, names, strict=True):
        most = d if name == "column" else d - 1
        if value > most:
            yield Fault(where, f"{name} {value} does not exist: must be <= {most} (d = {d})", _shown(item), True)


def _server_faults(where: str, item: Any, d: int) -> Iterator[Fault]:
    yield from _beyond(where, item, ("layer", "column", "slot"), d)


def _leaf_faults(where: str, item: Any, d: int) -> Iterator[Fault]:
    yield from _beyond(where, item, ("layer", "column"), d)


def _spine_faults(where: str, item: Any, d: int) -> Iterator[Fault]:
    yield from _beyond(where, item, ("column", "column"), d)
    if item[0] == item[1]:
        yield Fault(where, "a spine joins two different columns", _shown(item), True)


def _link_faults(where: str, item: Any, d: int) -> Iterator[Fault]:
    yield from _leaf_faults(f"{where}.leaf", item["leaf"], d)
    yield from _spine_faults(f"{where}.spine", item["spine"], d)
    if item["leaf"][1] not in item["spine"]:
        message = f"does not join column {item['leaf'][1]}, so leaf {list(item['leaf'])} has no link to it"
        yield Fault(f"{where}.spine", message, _shown(item["spine"]), True)


def _pair_faults(where: str, item: Any, d: int) -> Iterator[Fault]:
    yield from _server_faults(f"{where}.source", item["source"], d)
    yield from _server_faults(f"{where}.target", item["target"], d)


def _demand_faults(raw: dict[str, Any], d: int) -> Iterator[Fault]:
    """What is wrong with the pairs: ids, pairs named twice, servers that are not of the job."""
    demand = raw["demand"]
    if not demand:
        yield Fault("demand", "asks for no transfer")
    yield from _list_faults("demand", demand, "pair", d)
    try:
        listed = _job(raw, d)
    except (TypeError, KeyError, ValueError):
        return
    job = None if listed is None else set(listed)
    for index, item in enumerate(demand if job is not None else ()):
        for end, server in zip(("source", "target"), _key(item, "pair") or (), strict=False):
            if job is not None and server not in job:
                yield Fault(f"demand[{index}].{end}", "is no server of the job", list(server), True)


def _job(raw: dict[str, Any], d: int) -> list[Any] | None:
    """The servers of block or subset, None where there is neither or the block is too large; for well-formed data."""
    if raw.get("block") is not None:
        sides = raw["block"]["layers"], raw["block"]["columns"], raw["block"]["servers"]
        return None if max(sides) > d + 1 else [tuple(map(int, server)) for server in np.ndindex(*sides)]
    return None if raw.get("subset") is None else [_key(item, "server") for item in raw["subset"]]


def _empty_fault(raw: dict[str, Any], d: int) -> Iterator[Fault]:
    """A fault when the failed leaves and servers leave no server of the job; ``failed`` is an object."""
    failed = raw["failed"]
    dead: Callable[[str, str], set[Any]] = lambda name, kind: {_key(item, kind) for item in failed.get(name) or ()}  # noqa: E731
    try:
        leaves, servers = dead("leaves", "leaf"), dead("servers", "server")
        job = _job(raw, d)
        asked = [_key(item, "pair") for item in raw.get("demand") or ()]
    except (TypeError, KeyError, ValueError):
        return

    def dead_server(server: Any) -> bool:
        return server in servers or server[:2] in leaves

    if job and all(server is not None and dead_server(server) for server in job):
        yield Fault("failed", "leaves no server of the job")
    elif asked and all(pair is not None and any(map(dead_server, pair)) for pair in asked):
        yield Fault("failed", "leaves no transfer of the demand")


def suited(instance: MLFMInstance, method: str) -> bool:
    """Whether a default method fits the job's kind and size."""
    if method == "closed_form":
        return instance.block is not None and not instance.any_link_failed and not instance.failed.servers
    if method == "greedy":
        return instance.demand is not None
    if method in ("repair", "columns", "spines"):
        return _suited_to_failures(instance, method)
    return method not in ("shift", "cpsat") or instance.ranks**2 <= MAX_TRANSFERS


def _suited_to_failures(instance: MLFMInstance, method: str) -> bool:
    """Whether one of the methods for large machines with failures fits."""
    whole = instance.block is not None and instance.demand is None and instance.routes == "detour"
    failed, large = instance.failed, instance.any_link_failed and instance.ranks**2 > MAX_TRANSFERS
    uneven = bool(failed.leaves or failed.servers)
    if method == "repair":
        return whole and large and (bool(failed.links) or uneven)
    every = method == "columns" or (bool(failed.links) and instance.ranks == instance.leaves * instance.d)
    return whole and large and not uneven and every


def size(instance: MLFMInstance) -> int:
    """Return the number of servers that work."""
    return instance.ranks
