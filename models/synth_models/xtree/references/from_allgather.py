"""Reduce-scatter and allreduce out of a method for allgather, on any network.

A reduce-scatter is an allgather on the reversed network played backwards: where the allgather's tree hands a chunk
from parent to child, the reduce-scatter hands the child's partial sum to the parent, later arrivals first. On an
EquiMesh the reversed network is the EquiMesh with every ring turned round, which is what MirrorXTree (algorithm 3)
builds its reduce-scatter on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from synth.errors import SizeLimitError
from synth.network import Network
from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule, listed
from synth_models.xtree.instance import XTreeInstance

Allgather = Callable[[Network, int], Schedule]
"""``(network, chunks per node) -> allgather schedule``."""

MOST_LISTED = 200_000_000  # transfers of one phase that a method lists; beyond it none here has the memory
LISTED = 2_000_000  # transfers up to which a schedule that symmetry repeats is listed


def check_listed(instance: XTreeInstance) -> None:
    """Raise :class:`SizeLimitError` where a method that lists every transfer would run out of memory."""
    count = (instance.topology.nodes - 1) * instance.total_chunks
    if count > MOST_LISTED:
        raise SizeLimitError(
            f"there would be {count} transfers to list, at most {MOST_LISTED} are; use symmetric (tori, rings, "
            "hypercubes) or cycle (meshes)"
        )


def by_allgather(instance: XTreeInstance, allgather: Allgather) -> Schedule:
    """The instance's collective by ``allgather``: directly, reversed, or reversed then directly (allreduce). Raises
    :class:`SizeLimitError`."""
    check_listed(instance)
    network = instance.topology
    if instance.collective == "allgather":
        return allgather(network, instance.chunks)
    scatter = allgather(network.reversed(), instance.chunks).reversed_in_time(adds=True)
    if instance.collective == "reduce_scatter":
        return scatter
    return scatter.then(allgather(network, instance.chunks))


def by_quotient(
    instance: XTreeInstance, allgather: Callable[[Network, int], QuotientSchedule]
) -> Schedule | QuotientSchedule:
    """The same for an allgather that symmetry repeats: every transfer, up to ``LISTED`` of them, beyond that its part
    and symmetries. The reversed network has the same symmetries."""
    network = instance.topology
    parts: list[QuotientSchedule] = []
    if instance.collective != "allgather":
        scatter = allgather(network.reversed(), instance.chunks)
        parts.append(replace(scatter, part=scatter.part.reversed_in_time(adds=True)))
    if instance.collective != "reduce_scatter":
        parts.append(allgather(network, instance.chunks))
    found = parts[0] if len(parts) == 1 else replace(parts[0], part=parts[0].part.then(parts[1].part))
    return listed(network, found) if found.transfers(network.nodes) <= LISTED else found
