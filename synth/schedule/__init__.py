"""Collectives, schedules, their replay and their timing."""

from synth.schedule.collective import (
    COLLECTIVES,
    Collective,
    allgather,
    allreduce,
    alltoall,
    broadcast,
    reduce_scatter,
)
from synth.schedule.schedule import Schedule

__all__ = [
    "COLLECTIVES",
    "Collective",
    "Schedule",
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "reduce_scatter",
]
