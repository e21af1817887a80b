"""The leap bound and the rings on which it is the fewest steps of any schedule.

That it is a bound is proven in ``bounds/steps.py``, that it is reached in ``references/relay_graph.py`` and,
for two wavelengths on odd rings, in ``references/relay_two.py``.
"""

from __future__ import annotations


def leap_bound(nodes: int, wavelengths: int) -> int:
    """``ceil((N-1)/(w+1))`` steps, never below the receive bound."""
    return -(-(nodes - 1) // (wavelengths + 1))


def leaps_suffice(nodes: int, wavelengths: int, max_hops: int) -> bool:
    """Whether the leap bound ``T`` is known to be reached: ``2T >= w - 1`` and circuits of ``w - 1`` hops are allowed.

    With two wavelengths circuits of 2 hops are needed, and ``N - 1`` must not be a multiple of 6: there ``relay`` takes
    one step more. (Four nodes with two wavelengths take one step by a single stage of OpTree.)
    """
    if wavelengths == 2 and nodes % 6 == 1:
        return False
    longest = 2 if wavelengths == 2 else max(1, wavelengths - 1)
    return 2 * leap_bound(nodes, wavelengths) >= wavelengths - 1 and max_hops >= min(longest, nodes - 1)
