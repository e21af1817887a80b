"""All-to-all as one bulk demand on a static topology: the least load when all pairs are routed at once.

The static side of the paper's Figure 10 ("optimal flow schedule"): no steps, so one start-up time and one longest
route. The load is that of a maximum concurrent flow of all ordered pairs, aggregated by source:

    minimise u   subject to   flow of source s: what enters v less what leaves it is 1 for every v other than s,
                              load of a link <= u * its parallel links,      flows >= 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from synth.arrays import IntArray
from synth.graph.hops import hops


class Bulk(NamedTuple):
    """``unit_load``: least largest sum of shares of pairs per parallel link; ``volume_load``: what hop counts alone
    demand; ``diameter`` in hops. A route may be longer than the diameter, so a time with it is in the bulk's favour."""

    unit_load: float
    volume_load: float
    diameter: int


def bulk_load(links: IntArray, gpus: int) -> Bulk:
    """The loads of all-to-all on a topology (links, 3). Raises ``ValueError`` when a pair cannot be reached.

    A linear program with gpus * links variables, solved by HiGHS's interior-point method.
    """
    apart = hops(gpus, links[:, 0], links[:, 1], range(gpus))
    if np.any(apart < 0):
        raise ValueError("a pair cannot be reached")
    edges = len(links)
    source = np.repeat(np.arange(gpus), edges)
    edge = np.tile(np.arange(edges), gpus)
    column = np.arange(gpus * edges)
    keep = links[edge, 1] != source  # nothing has to return to its source
    head, tail = source * gpus + links[edge, 1], source * gpus + links[edge, 0]
    out = keep & (links[edge, 0] != source)
    rows = np.concatenate([head[keep], tail[out]])
    columns = np.concatenate([column[keep], column[out]])
    values = np.concatenate([np.ones(int(keep.sum())), -np.ones(int(out.sum()))])
    variables = gpus * edges + 1
    balance = csr_array((values, (rows, columns)), shape=(gpus * gpus, variables))
    inner = np.flatnonzero(np.arange(gpus * gpus) // gpus != np.arange(gpus * gpus) % gpus)
    load = csr_array(
        (
            np.concatenate([np.ones(int(keep.sum())), -links[:, 2].astype(float)]),
            (
                np.concatenate([edge[keep], np.arange(edges)]),
                np.concatenate([column[keep], np.full(edges, variables - 1)]),
            ),
        ),
        shape=(edges, variables),
    )
    cost = np.zeros(variables)
    cost[-1] = 1.0
    result = linprog(  # type: ignore[call-overload]
        cost, A_ub=load, b_ub=np.zeros(edges), A_eq=balance[inner], b_eq=np.ones(len(inner)), method="highs-ipm"
    )
    if result.status != 0:
        raise RuntimeError(f"the bulk program ended with: {result.message}")
    return Bulk(float(result.fun), float(apart.sum() / links[:, 2].sum()), int(apart.max()))
