"""The leap bound and the rings on which it is the fewest steps of any schedule.

That it is a bound is proven in ``bounds/steps.py``, that it is reached in ``references/relay_graph.py``.
"""

from __future__ import annotations


def leap_bound(nodes: int, wavelengths: int) -> int:
    """``ceil((N-1)/(w+1))`` steps, never below the receive bound."""
    return -(-(nodes - 1) // (wavelengths + 1))


def leaps_suffice(nodes: int, wavelengths: int, max_hops: int) -> bool:
    """Whether the theorem of ``references/relay_graph.py`` says that the leap bound ``T`` is reached: ``2T >= w - 1``
    and circuits of ``w - 1`` hops (``w = 2``: 2 hops) are allowed; with two wavelengths on even rings of more than 4
    nodes only."""
    if wavelengths == 2 and (nodes % 2 or nodes <= 4):
        return False
    longest = max(1, wavelengths - 1 + (wavelengths == 2))
    return 2 * leap_bound(nodes, wavelengths) >= wavelengths - 1 and max_hops >= min(longest, nodes - 1)
