"""Collectives, schedules, their replay and their timing."""

from synth.schedule.collective import (
    COLLECTIVES,
    Collective,
    all_to_all,
    allgather,
    allreduce,
    broadcast,
    reduce_scatter,
)
from synth.schedule.schedule import Schedule

__all__ = [
    "COLLECTIVES",
    "Collective",
    "Schedule",
    "all_to_all",
    "allgather",
    "allreduce",
    "broadcast",
    "reduce_scatter",
]
