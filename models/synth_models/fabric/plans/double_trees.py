"""The two binary trees of which inner nodes of one are leaves of the other.

Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009.
"""

from __future__ import annotations


def parents(n: int, t: int) -> list[int]:
    """Parent of each of n boxes (-1: the root) in tree t.

    Tree 0 is in-order on the labels 1..n: a label's height is the number of its trailing zeros, so odd labels are
    leaves; the parent is the nearest label one height (or, past n, more) up. Tree 1 is its mirror image for even n and
    is shifted by one for odd n, so that labels change between odd and even.
    """

    def above(x: int) -> int:
        while (low := x & -x) <= n:
            x = (x - low) | (low << 1)
            if x <= n:
                return x
        return 0

    label = [x if t == 0 else (n + 1 - x if n % 2 == 0 else x % n + 1) for x in range(1, n + 1)]
    box = {x: b for b, x in enumerate(label)}
    return [box[p] if (p := above(x)) else -1 for x in label]
