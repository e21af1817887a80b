"""The flow that follows shortest routes only and splits at every GPU by link counts: no program, for the largest cases.

Its load is that of a routing, not the smallest one.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.parts.flows.flow_rows import LinkFlow


def split(pairs: IntArray, links: IntArray, distance: IntArray) -> LinkFlow:
    """Shares of every pair on the links of its shortest routes; O(pairs * links * hops) worst case, vectorised."""
    tail, head, count = links.T
    ends = pairs[:, 1]
    amount: FloatArray = np.zeros((len(pairs), len(distance)))
    amount[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    found: list[tuple[IntArray, int, IntArray, FloatArray]] = []
    for hop in range(int(distance[pairs[:, 0], ends].max())):
        towards = distance[tail][:, ends] == distance[head][:, ends] + 1  # (links, pairs)
        pair, link = np.nonzero(towards.T & (amount[:, tail] > 0) & (tail[None, :] != ends[:, None]))
        total = np.zeros_like(amount)
        np.add.at(total, (pair, tail[link]), count[link].astype(np.float64))
        share = amount[pair, tail[link]] * count[link] / total[pair, tail[link]]
        amount = np.zeros_like(amount)
        np.add.at(amount, (pair, head[link]), share)
        found.append((pair, hop, link, share))
    return LinkFlow(
        np.concatenate([pair for pair, *_ in found]),
        np.concatenate([np.full(len(pair), hop, dtype=np.int64) for pair, hop, *_ in found]),
        np.concatenate([link for _, _, link, _ in found]),
        np.concatenate([share for *_, share in found]),
    )
