"""What NCCL sees of a machine's links: rates of a GPU inside its box, and of a box's NICs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def rates(network: Any, boxes: list[list[int]]) -> tuple[float, dict[int, float]]:
    """Bytes/s that the first box's first GPU sends to its box, and, by the node of the box, those of a link that leads
    out of it: to a node that several boxes come to by equally few hops. None does where boxes are joined directly."""
    links = list(zip(network.src.tolist(), network.dst.tolist(), network.bandwidth.tolist(), strict=True))
    after: dict[int, list[int]] = {}
    for u, v, _ in links:
        after.setdefault(u, []).append(v)
    own = _owners(after, boxes)
    ranks = {rank for box in boxes for rank in box}
    if any(u in ranks and v in ranks and own[u] != own[v] for u, v, _ in links):
        return 0.0, {}
    out = {u: rate for u, v, rate in links if own.get(u) == 0 and own.get(v, -1) == -1}
    mates = [(v, rate) for u, v, rate in links if u == boxes[0][0] and own.get(v) == 0 and v not in out]
    kept = [rate for v, rate in mates if v in ranks or len(ranks.intersection(after[v])) > 1]
    return sum(kept), out


def _owners(after: Mapping[int, Sequence[int]], boxes: Sequence[Sequence[int]]) -> dict[int, int]:
    """The box that comes to every node by the fewest hops, -1 where several do."""
    own = {rank: b for b, box in enumerate(boxes) for rank in box}
    edge = list(own)
    while edge:
        come: dict[int, set[int]] = {}
        for u in edge:
            for v in after.get(u, ()) if own[u] >= 0 else ():
                if v not in own:
                    come.setdefault(v, set()).add(own[u])
        own |= {v: next(iter(among)) if len(among) == 1 else -1 for v, among in come.items()}
        edge = list(come)
    return own


def of_one_domain(inside: float, ways: Mapping[int, float], boxes: Sequence[Sequence[int]], ranks: int) -> float:
    """Bytes/s of a GPU where the boxes are those of one NVLink domain, which NCCL takes for one box; 0 elsewhere."""
    own = [rate for node, rate in ways.items() if node in boxes[0]]
    return min(own) if own and not inside and len(boxes) < ranks else 0.0
