"""When every transfer of a flat table ends if each begins as soon as it can: fractions, from the problem's statement,
nothing of ours imported.

A hop begins when its data are there (of the first hop: all of its piece that had come to its rank when the table begins
it; of another hop: a latency after the hop before it began) and when the hops before it on its link, and on its group,
have ended. It takes bytes / bandwidth. All has arrived behind a hop a latency after the hop has ended and all has
arrived before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

HOPS = ("file_links", "hop_src", "hop_dst", "hop_start", "hop_arrive")


def ends(rows: Sequence[dict[str, Any]], links: Sequence[dict[str, Any]]) -> list[Fraction]:
    """When the last of every row has arrived [s]. ``links``: ``link,src,dst,bandwidth,latency,group``."""
    by_number = {int(link["link"]): link for link in links}
    hops = sorted(
        (int(start), k, n, int(e), int(u), int(v), int(arrive))
        for n, row in enumerate(rows)
        for k, (e, u, v, start, arrive) in enumerate(zip(*(str(row[key]).split() for key in HOPS), strict=True))
    )
    there: dict[tuple[int, int], list[tuple[int, Fraction]]] = defaultdict(list)  # by piece and node: tick, moment
    busy: dict[Any, list[tuple[int, Fraction]]] = defaultdict(list)  # by link or group: transfer, until
    head, tail = dict[tuple[int, int], Fraction](), dict[tuple[int, int], Fraction]()  # by transfer and node
    found = [Fraction(0)] * len(rows)
    for start, _, n, e, u, v, arrive in hops:
        piece, link = int(rows[n]["piece"]), by_number[e]
        occupied = [e, f"group {link['group']}"][: 2 if link["group"] else 1]
        if (n, u) not in head:
            head[n, u] = max((when for tick, when in there[piece, u] if tick <= start), default=Fraction(0))
            tail[n, u] = Fraction(0)
        begin = max([head[n, u], *(until for thing in occupied for m, until in busy[thing] if m != n)])
        end = begin + int(rows[n]["bytes"]) / Fraction(str(link["bandwidth"]))
        for thing in occupied:
            busy[thing].append((n, end))
        latency = Fraction(str(link["latency"]))
        head[n, v], tail[n, v] = begin + latency, max(end, tail[n, u]) + latency
        if arrive >= 0:
            there[piece, v].append((arrive, tail[n, v]))
            found[n] = max(found[n], tail[n, v])
    return found
