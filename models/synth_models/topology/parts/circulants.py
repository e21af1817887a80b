"""Steps of circulant graphs: node u is joined to u ± each of them."""

from __future__ import annotations

from math import ceil, sqrt


def least_diameter_steps(nodes: int) -> tuple[int, int]:
    """Of degree 4 the steps of the least diameter (Boesch and Wang, IEEE TCS 1985)."""
    m = ceil((sqrt(2 * nodes - 1) - 1) / 2)
    return m, m + 1
