"""Method ``bound``, and bounds for machines whose routes are too many to list: whole ones with two-spine routes.

* **leaf**: the transfers between a leaf and the others go over its working up-links (down-links), one a phase each.
* **columns**, where spines have failed but no single cables, for jobs that are alike on all layers: a linear program
  over columns makes the most loaded link as light as possible; layers may be averaged, so it loses nothing. Its dual
  weights are the same for all leaves of a column.

Both are weights on links, which the check verifies against all routes (``check/certificates.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bounds.load import Bound, lower_bound, turns_in_words, whole_duals
from synth_models.mlfm.instance import Block, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import cut_off, leaf_problem, working


def machine_bound(instance: MLFMInstance) -> tuple[Bound | None, str | None]:
    """The strongest of these bounds, for a whole all-to-all; or None and why the job cannot be done."""
    usable = working(instance)
    leaf, size = np.unique(instance.server_leaf, return_counts=True)
    reason = _cut_off(instance, usable, leaf)
    if reason is not None:
        return None, reason
    best = Bound(instance.busiest, turns_in_words(instance), {"binding": "ranks"})
    leaving = size * (instance.ranks - size)
    links = usable[leaf].sum(axis=1)
    phases = -(-leaving // np.maximum(links, 1))
    worst = int(phases.argmax())
    if leaving.any() and phases[worst] > best.phases:
        x = int(leaf[worst])
        rows = [[x, int(c), 0] for c in np.flatnonzero(usable[x])]
        words = f"links: {leaving[worst]} flows over the {len(rows)} up-links of leaf {instance.leaf_name(x)}"
        certificate = {"binding": "links", "links": rows, "weights": [1] * len(rows)}
        best = Bound(int(phases[worst]), words, certificate)
    block = instance.block
    if instance.failed.spines and not instance.failed.links and block is not None and block.layers == instance.d:
        by_columns = _column_bound(instance, usable, block)
        if by_columns is not None and by_columns.phases > best.phases:
            best = by_columns
    return best, None


def _column_bound(instance: MLFMInstance, usable: BoolArray, block: Block) -> Bound | None:
    """The bound by columns of a block that has all layers of the machine."""
    alive = usable[: instance.columns]
    found = [weights for weights in whole_duals(_column_duals(instance, alive, block)) if weights.any()]
    if not found:
        return None
    half = alive.size
    proven = [_column_phases(instance, alive, block, *(w.reshape(2, *alive.shape))) for w in found]
    place = int(np.argmax(proven))
    up_down = found[place].reshape(2, *alive.shape)
    rows, weights = [], []
    for way, a, c in np.argwhere(up_down > 0).tolist():
        for layer in range(instance.d):
            rows.append([layer * instance.columns + a, c, way])
            weights.append(int(up_down[way, a, c]))
    words = f"links: dual weights of a linear program over columns, on {len(rows)} of {2 * half * instance.d} links"
    return Bound(proven[place], words, {"binding": "links", "links": rows, "weights": weights})


def _column_duals(instance: MLFMInstance, alive: BoolArray, block: Block) -> FloatArray:
    """Dual weights of ``min z`` over the flows of a leaf of every column; shape (2 * columns * columns,), up first."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    columns, n, m = instance.columns, block.layers, block.servers
    loads, demands, needed = list[tuple[int, int]](), list[tuple[int, int]](), list[float]()
    variable = 0
    for a in range(block.columns):
        for b in range(block.columns):
            for links in _column_routes(a, b, columns, alive):
                loads += [(link, variable) for link in links]
                demands.append((len(needed), variable))
                variable += 1
            needed.append(float((n - (a == b)) * m * m))
    lines, order = np.unique([link for link, _ in loads], return_inverse=True)
    rows = np.concatenate([order, np.arange(len(lines))])
    cols = np.concatenate([[v for _, v in loads], np.full(len(lines), variable)])
    values = np.concatenate([np.ones(len(loads)), np.full(len(lines), -1.0)])
    carries = coo_array((values, (rows, cols)), shape=(len(lines), variable + 1)).tocsr()
    pair, flow = np.array(demands).T
    meets = coo_array((np.ones(len(pair)), (pair, flow)), shape=(len(needed), variable + 1)).tocsr()
    run: Any = linprog
    cost = np.append(np.zeros(variable), 1.0)
    result = run(cost, carries, np.zeros(len(lines)), meets, np.array(needed), method="highs")
    if result.status != 0:
        raise RuntimeError(f"the linear program over columns failed: {result.message}")
    duals = np.zeros(2 * columns * columns)
    duals[lines] = np.maximum(0.0, -result.ineqlin.marginals)
    return duals


def _column_routes(a: int, b: int, columns: int, alive: BoolArray) -> list[list[int]]:
    """The links of every route from a leaf of column a to one of column b, numbered as :func:`_column_duals` does."""

    def up(leaf: int, c: int) -> int:
        return leaf * columns + c

    def down(leaf: int, c: int) -> int:
        return columns * columns + up(leaf, c)

    if a == b:
        return [[up(a, c), down(a, c)] for c in range(columns) if alive[a, c]]
    routes: list[list[int]] = []
    for c in range(columns):
        if c == b and alive[a, b]:
            routes.append([up(a, b), down(b, a)])
        elif c not in (a, b) and alive[a, c] and alive[c, b]:
            routes.append([up(a, c), down(c, a), up(c, b), down(b, c)])
    return routes


def _column_phases(instance: MLFMInstance, alive: BoolArray, block: Block, up: Any, down: Any) -> int:
    """The phases that whole weights prove which are the same for all leaves of a column."""
    far = 1 << 40
    up, down = np.where(alive, up, far), np.where(alive, down, far)
    needed = 0
    for a in range(block.columns):
        for b in range(block.columns):
            if a == b:
                length = int((up[a] + down[a]).min())
            else:
                third = np.array([c not in (a, b) for c in range(instance.columns)])
                over = np.where(third, up[a] + down[:, a] + up[:, b] + down[b], 4 * far).min()
                length = int(min(up[a, b] + down[b, a], over))
            needed += (block.layers - (a == b)) * block.servers**2 * length
    return -(-needed // int(up[alive].sum() + down[alive].sum()))


def _cut_off(instance: MLFMInstance, usable: BoolArray, leaf: IntArray) -> str | None:
    """A pair of leaves without an allowed route, in words."""
    columns = instance.columns
    column = np.arange(len(usable)) % columns
    hop = usable[:, column] & usable[:, column].T  # [x, y]: one spine joins leaves of different columns
    for x in leaf.tolist():
        others = leaf[leaf != x]
        near = np.where(column[others] == column[x], (usable[x] & usable[others]).any(axis=1), hop[x, others])
        if instance.routes == "detour" and not near.all():
            far = others[~near]
            # over z: hop(x, z) and hop(z, y), z in a third column
            third = (hop[x] & (column != column[x])).astype(np.int64)
            reach = (hop[:, far] & (column[:, None] != column[far][None, :])).astype(np.int64)
            near[~near] = third @ reach > 0
        if not near.all():
            y = int(others[~near][0])
            names = [instance.server_name(int(np.argmax(instance.server_leaf == end))) for end in (x, y)]
            return f"server {names[0]} is cut off from server {names[1]} by the failures: no allowed route is left"
    return None


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``bound``: prove, solve nothing. The bounds by routes where these can be listed, else those above."""
    try:
        problem = leaf_problem(instance)
    except SizeLimitError:
        if instance.demand is not None:
            raise
        bound, reason = machine_bound(instance)
    else:
        reason = cut_off(instance, problem)
        bound = None if reason else lower_bound(instance, problem, options)
    if bound is None:
        return Outcome("infeasible", message=reason)
    return Outcome("finished", bound=float(bound.phases), bound_proof=bound.words, certificate=bound.certificate)
