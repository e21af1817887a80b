"""What members miss of the flow that they need in a small network given as a matrix of whole capacities."""

from __future__ import annotations

from synth.arrays import IntArray
from synth.deadline import OutOfTime, left
from synth.graph.max_flow import Residual, augment, of_matrix
from synth.kernel_clock import now
from synth.kernels import jit


def shortfall(capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int) -> tuple[int, int]:
    """How much the worst sink misses of ``need`` units from the source, and its number in ``sinks`` (-1: none
    misses anything); stops at the first that misses ``enough``. Raises :class:`OutOfTime` at the time limit."""
    worst, who = _shortfall(capacity, source, sinks, need, enough, left())
    if worst < 0:
        raise OutOfTime
    return worst, who


@jit
def _shortfall(
    capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int, seconds: float
) -> tuple[int, int]:
    """As :func:`shortfall`; (-1, -1) when the seconds are over."""
    network = of_matrix(capacity)
    worst, who = 0, -1
    end = now() + seconds
    for i in range(len(sinks)):
        if now() > end:
            return -1, -1
        left = Residual(network.start, network.arc, network.head, network.room.copy())
        missing = need - augment(left, source, sinks[i], need)
        if missing > worst:
            worst, who = missing, i
            if worst >= enough:
                break
    return worst, who
