"""The inner loop of ``pull`` and ``symmetric``: grow a maximum bipartite matching of slots (links) to items (chunks).

Items come in order of preference and are added one at a time by an augmenting path, which keeps every slot already
filled. The sets of items that can be matched at once form a transversal matroid, so taking them greedily in order
of preference yields a maximum matching of best total preference.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit

MAX_SLOTS = 62  # slots are bits of one integer


@jit
def augment(
    item: int, offers: np.int64, taken: IntArray, masks: IntArray, parent: IntArray, queue: IntArray, slots: int
) -> bool:
    """Try to match ``item``, which the slots in the bit mask ``offers`` can carry.

    ``taken[j]`` is the item in slot ``j`` or -1 and ``masks[j]`` that item's own offers; both are updated.
    ``parent`` and ``queue`` are scratch arrays of shape (slots,). Returns whether the matching grew.
    """
    seen = np.int64(0)
    head = tail = 0
    end = -1
    for j in range(slots):
        if offers >> j & 1:
            seen |= np.int64(1) << j
            parent[j] = -1
            queue[tail] = j
            tail += 1
            if taken[j] < 0:
                end = j
                break
    while end < 0 and head < tail:
        j = queue[head]
        head += 1
        reach = masks[j] & ~seen
        for other in range(slots):
            if reach >> other & 1:
                seen |= np.int64(1) << other
                parent[other] = j
                queue[tail] = other
                tail += 1
                if taken[other] < 0:
                    end = other
                    break
    if end < 0:
        return False
    while parent[end] >= 0:
        taken[end], masks[end] = taken[parent[end]], masks[parent[end]]
        end = parent[end]
    taken[end], masks[end] = item, offers
    return True
