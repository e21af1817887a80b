"""A replay of a schedule from its flat table and its instance file (links one by one) alone, as anybody would write it.

It imports nothing of ours. What is false ends in an ``AssertionError``, or in a ``KeyError`` or ``ValueError``.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, islice, takewhile
from typing import Any

HOPS = ("file_links", "hop_src", "hop_dst", "hop_start", "hop_ticks", "hop_arrive")
Event = tuple[int, int, int, int]  # tick, kind (0 a copy arrives, 1 a sum arrives, 2 a transfer starts), row, node


def replay(table: str, instance: dict[str, Any]) -> Fraction:
    """Refuse a table that is no schedule of the instance; the time of the last arrival in seconds."""
    rows = list(csv.DictReader(io.StringIO(table)))
    data_arrives(rows, links_hold(rows, instance), instance)
    assert len({row["ticks_per_s"] for row in rows}) <= 1
    return max((Fraction(int(row["end_tick"]), int(row["ticks_per_s"])) for row in rows), default=Fraction(0))


def in_ten_lines(rows: list[dict[str, str]], switches: list[int], held: dict[Any, int], wanted: dict[Any, int]) -> None:
    """The same in short, without a look into the file: no link carries two transfers at a time, nobody sends what it
    does not hold, nothing is added twice. ``held``, ``wanted``: contributions, a bit each, by piece and rank."""
    hops = [
        (int(e), n, int(s), int(s) + int(ticks), int(arrive), int(v))
        for n, row in enumerate(rows)
        for e, _, v, s, ticks, arrive in zip(*(row[key].split() for key in HOPS), strict=True)
    ]
    assert not any(a[0] == b[0] and a[1] != b[1] and a[2] < b[3] and b[2] < a[3] for a, b in combinations(hops, 2))
    events = [(int(row["start_tick"]), 2, n, int(row["src"])) for n, row in enumerate(rows)]
    events += [(arrive, int(rows[n].get("adds") or 0), n, v) for _, n, _, _, arrive, v in hops if arrive >= 0]
    for _, kind, n, v in sorted(events):
        brings = int(rows[n].get("contributions") or "1", 16)
        at = (int(rows[n]["piece"]), v, *[brings] * (v in switches))  # a switch keeps sums apart
        assert held.get(at, 0) == brings if kind == 2 else kind == 0 or v in switches or not held.get(at, 0) & brings
        held[at] = brings | (held.get(at, 0) if kind else 0)
    assert wanted.items() <= held.items()


def links_hold(rows: list[dict[str, str]], instance: dict[str, Any]) -> list[Event]:
    """Every hop uses a link of the file that works, for as long as it takes, and no link or group carries two."""
    net, broken, busy, events = instance["network"], instance["failed"], list[Any](), list[Event]()
    stores = instance["switching"]["mode"] == "store_and_forward"
    left = {(u, v): Fraction(share) for u, v, share in broken.get("reduced") or ()}
    for n, row in enumerate(rows):
        hops = list(zip(*(map(int, row[key].split()) for key in HOPS), strict=True))
        rate, start, passed, slowest = int(row["ticks_per_s"]), int(row["start_tick"]), {}, {}
        passed[hops[0][1]], slowest[hops[0][1]] = start, 0
        for e, u, v, begin, ticks, arrive in hops:
            link = net["links"][e]
            assert (u, v) == (link["src"], link["dst"])
            assert [u, v] not in broken["links"]
            assert not {u, v} & set(broken["nodes"])
            speed = Fraction(str(link["bandwidth"]))
            if (u, v) in left:  # the bandwidth that is left is a float again
                speed = Fraction(str(float(speed * left[u, v])))
            assert ticks == math.ceil(int(row["bytes"]) * rate / speed)
            assert begin == passed[u]
            passed[v] = begin + math.ceil(rate * Fraction(str(link.get("latency", 0))))
            slowest[v] = max(slowest[u], ticks)
            assert arrive == (passed[v] + slowest[v] if stores or v not in net["switches"] else -1)
            busy.append((link.get("group") or e, n, begin, begin + ticks))
            events += [(arrive, int(row.get("adds") or 0), n, v)] * (arrive >= 0)
        assert int(row["end_tick"]) == max(hop[-1] for hop in hops)
        events.append((start, 2, n, hops[0][1]))
    for hops in by_key(busy):
        for k, (_, end, n) in enumerate(hops):
            later = takewhile(lambda hop, end=end: hop[0] < end, islice(hops, k + 1, None))
            assert all(other == n for _, _, other in later)
    return sorted(events)


def by_key(busy: list[tuple[Any, int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """From when to when a link or group carries which row, in order, one after the other."""
    found: dict[Any, list[tuple[int, int, int]]] = {}
    for key, n, begin, end in busy:
        found.setdefault(key, []).append((begin, end, n))
    return [sorted(hops) for hops in found.values()]


def data_arrives(rows: list[dict[str, str]], events: list[Event], instance: dict[str, Any]) -> None:
    """Nobody sends what it does not hold, no contribution is added twice, all ends where the collective wants it."""
    blocks, bit, switching = blocks_of(instance), bits(instance), instance["switching"]
    everyone, ranks = sum(bit.values()), set(range(instance["network"]["nodes"])) - set(instance["network"]["switches"])
    pieces = {(int(row["piece"]), int(row["block"]), int(row["bytes"])) for row in rows}
    size = Counter[int]()
    for _, block, amount in pieces:
        size[block] += amount
    assert len({piece for piece, _, _ in pieces}) == len(pieces)
    assert size == Counter({b: amount for b, (_, _, amount) in enumerate(blocks)})
    whole = {p: everyone if blocks[b][0] is None else bit[blocks[b][0]] for p, b, _ in pieces}
    held = {(p, v): m for p, b, _ in pieces for v, m in bit.items() if blocks[b][0] in (None, v)}
    parked: dict[Any, list[tuple[int, int]]] = {}
    for tick, kind, n, v in events:
        at = int(rows[n]["piece"]), v
        brings = int(rows[n]["contributions"], 16) if "contributions" in rows[n] else whole[at[0]]
        if kind == 2 and v in ranks:
            assert held[at] == brings
            assert rows[n].get("adds") == "1" or brings == whole[at[0]]
        elif kind == 2:  # a switch that stores: what comes now, with a buffer what has come, without copies once
            found = [one for one in parked[at] if one[1] == brings and (one[0] == tick or switching["buffer"])]
            assert found
            if not switching["copies"]:
                parked[at].remove(found[-1])
        elif v in ranks:
            assert kind == 0 or not held.get(at, 0) & brings
            held[at] = brings | (held.get(at, 0) if kind else 0)
        else:
            parked.setdefault(at, []).append((tick, brings))
    for p, b, _ in pieces:
        assert all(held[p, v] == whole[p] for v in ([*bit] if blocks[b][1] is None else [blocks[b][1]]))


def bits(instance: dict[str, Any]) -> dict[int, int]:
    """The bit of every rank of the process group."""
    gone = {*instance["network"]["switches"], *instance["failed"]["nodes"]}
    group = instance.get("ranks") or [v for v in range(instance["network"]["nodes"]) if v not in gone]
    return {v: 1 << i for i, v in enumerate(group)}


def blocks_of(instance: dict[str, Any]) -> list[tuple[int | None, int | None, int]]:
    """Whose data (None: a sum), who wants it (None: everyone), bytes, by number of the block."""
    group, size = list(bits(instance)), instance["bytes"]
    root = instance.get("root") if instance.get("root") is not None else group[0]
    part = size // len(group)
    others = [v for v in group if v != root]
    return {
        "allgather": [(v, None, part) for v in group],
        "reduce_scatter": [(None, v, part) for v in group],
        "allreduce": [(None, None, size)],
        "alltoall": [(u, v, part) for u in group for v in group if u != v],
        "broadcast": [(root, None, size)],
        "reduce": [(None, root, size)],
        "gather": [(v, root, part) for v in others],
        "scatter": [(root, v, part) for v in others],
        "demand": [(u, v, amount) for u, v, amount in instance.get("demand") or ()],
    }[instance["collective"]]
