"""Which method knows which collective and way of switching: what a run without ``-m`` tries."""

from __future__ import annotations

from synth_models.fabric.problem.blocks import COLLECTIVES

_FROM_ONE_TO_ALL = ("allgather", "broadcast")
_REVERSED = ("reduce_scatter", "reduce")
_TREES = (*_FROM_ONE_TO_ALL, *_REVERSED, "allreduce")
_PAIRS = ("alltoall", "gather", "scatter", "demand")
COLLECTIVES_OF: dict[str, tuple[str, ...]] = {
    "bound": COLLECTIVES,
    "forest": _TREES,
    "flow": (*_PAIRS, "traffic"),
    "steiner": _TREES,
    "epochs": (*_FROM_ONE_TO_ALL, *_REVERSED, *_PAIRS),
    "continuous": COLLECTIVES,
    "pull": COLLECTIVES,
    "bfb": (*_FROM_ONE_TO_ALL, *_REVERSED, "allreduce"),
    "ring": ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"),
    "double_tree": ("allreduce", "broadcast", "reduce"),
    "hierarchical": (*_TREES, "traffic"),
    "symmetric": _TREES,
    "in_network": ("allreduce", "allgather", "reduce_scatter"),
    "nvls": ("allreduce",),
    "sharp": ("allreduce",),
    "recursive_doubling": ("allgather", "reduce_scatter", "allreduce"),
    "class_trees": ("traffic",),
    "direct": COLLECTIVES,
    "plan": (*_PAIRS, "traffic"),
    "slots": _PAIRS,
    **dict.fromkeys(("fast", "two_step", "spread_out"), ("alltoall", "demand")),
    "bruck": ("allgather", "alltoall"),
    "pat": ("allgather", "reduce_scatter"),
    "two_level": _TREES,
    "tacos": ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"),
}
OF_READY = (
    "late_rank",
    "continuous",
)  # they plan for ranks that are not ready at once; schedules of others are timed again
OF_SEVERAL = ("bound", "one_after_another", "together", "pull", "flow")  # the first three whatever they are


def knows(method: str, collective: str) -> bool:
    """Whether the method takes this collective."""
    return collective in COLLECTIVES_OF.get(method, ())
