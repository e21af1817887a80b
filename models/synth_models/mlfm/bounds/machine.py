"""Bounds for machines on which listing all routes between leaves takes too long: whole machines with two-spine routes.

* **leaf**: the transfers between a leaf and the others go over its working up-links (down-links), one a phase each.
* **columns**, where spines have failed but no single cables, for jobs that are alike on all layers: a linear program
  over columns makes the most loaded link as light as possible; layers may be averaged, so it loses nothing. Its dual
  weights are the same for all leaves of a column.

Both are weights on links, which the check verifies against all routes (``check/certificates.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth_models.mlfm.bounds.load import Bound, turns_in_words
from synth_models.mlfm.instance import IntArray, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import working


def machine_bound(instance: MLFMInstance) -> Bound | str:
    """The strongest of these bounds, for a whole all-to-all; or why the job cannot be done."""
    usable = working(instance)
    leaf, size = np.unique(instance.server_leaf, return_counts=True)
    reason = _cut_off(instance, usable, leaf)
    if reason is not None:
        return reason
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
    return best


def _cut_off(instance: MLFMInstance, usable: Any, leaf: IntArray) -> str | None:
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
