"""Method ``ring`` (reference): NCCL's rings.

Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009; NCCL's ring
algorithms, whose channels are cycles over different links. Along a cycle, allgather sends every block N - 1 hops on;
broadcast is a chain from the root, in chunks; reduce-scatter and reduce are these backwards; allreduce is
reduce-scatter and allgather. Data are dealt out to all cycles, in equal shares where these are as quick as each other.

On a homogeneous ring of n ranks (latency a, bandwidth b; a block of m bytes; one direction, one chunk) allgather takes
``(n - 1) (a + m / b)``, and half the bytes each way with both directions; allreduce of M bytes, m = M / n, takes twice
that; broadcast in k chunks ``(n - 1) a + (n - 1 + k - 1) M / (k b)``.

Which cycles (``cycles``; ours, more thorough than NCCL's fixed patterns), how many of
them and how many chunks is chosen for the size, by the time that the schedule then takes. Complexity: N^2 transfers a
cycle and chunk. Guarantee: throughput within a factor 2 of the optimum on one homogeneous ring of links (none in
general).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import MOST_AT_ALL, Edge, Kind, Trees, best_of, empty, refusal
from synth_models.fabric.references.ring.cycles import Cycle, Cycles, Hops, equal, several
from synth_models.fabric.references.ring.tuned import MOST_RUN_OUT
from synth_models.fabric.scheduling.moves import Ways

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``ring``."""
    refused = refusal(instance, KNOWN, "ring")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    if len(instance.machine.parts_of(instance.members)) > 1:
        return Outcome("unsupported", message="ring goes around all ranks, and here not all reach each other")
    many = len(instance.members) > MOST_RUN_OUT
    return best_of(instance, options, _kinds(instance, options.seed), racing=many)


def _kinds(instance: FabricInstance, seed: int) -> Iterator[Kind]:
    room = max(
        1, MOST_AT_ALL // (len(instance.blocks) if instance.collective != "allreduce" else len(instance.members))
    )
    room = max(1, room // len(instance.members))
    for found in several(instance, seed):
        if len(found.cycles) > room:  # so many transfers that only some of the rings are used
            found = equal(instance.machine, found.cycles[:room], found.hops[:room])
        count = len(found.cycles)
        name = f"{count} rings of {float(found.bandwidth) / 1e9:.4g} GB/s together" if count > 1 else "1 ring"
        yield name, partial(_there_and_back, instance, found)


def _there_and_back(instance: FabricInstance, found: Cycles) -> tuple[Trees, Trees]:
    """The cycles, and on the reversed machine, whose links have the same numbers, the same backwards."""
    back = tuple((cycle[0], *cycle[:0:-1]) for cycle in found.cycles)
    over = tuple(tuple(tuple(route[::-1] for route in hop[::-1]) for hop in hops[::-1]) for hops in found.hops)
    return trees(instance, found.cycles, found.hops, found.shares), trees(instance, back, over, found.shares)


def trees(
    instance: FabricInstance,
    cycles: tuple[Cycle, ...],
    hops: tuple[Hops, ...] | None = None,
    shares: tuple[int, ...] | None = None,
) -> Trees:
    """Chains along the cycles, from wherever the data are, over their own routes if these are given."""
    place = [{rank: k for k, rank in enumerate(cycle)} for cycle in cycles]

    def edges(holder: int, variant: int) -> Iterator[Edge]:
        cycle, first = cycles[variant], place[variant][holder]
        chain = cycle[first:] + cycle[:first]
        return zip(chain, chain[1:], range(len(chain)), strict=False)

    def routes(variant: int) -> Ways:
        cycle = cycles[variant]
        return dict(zip(zip(cycle, (*cycle[1:], cycle[0]), strict=True), hops[variant], strict=True)) if hops else {}

    links = [e for one in hops or () for hop in one for route in hop for e in route]
    apart = len(set(links)) == len(links) > 0 and shares is None and instance.the_root is None
    return Trees(len(cycles), edges, lambda variant: instance.members, routes if hops else None, shares, apart)
