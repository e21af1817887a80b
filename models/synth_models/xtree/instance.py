"""Instances of the xtree family: a network, a collective and the number of chunks per node."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault
from synth.instance import Instance, Unit
from synth.network import Network
from synth.network.spec import NetworkSpec, built, network_faults, node_count
from synth.schedule import COLLECTIVES, Collective

MAX_TRANSFERS = 2**32  # of one phase; only schedules that symmetry repeats come near, see references/from_allgather.py


class XTreeInstance(Instance):
    """One link-allocation problem.

    ``chunks`` is C, the equal chunks that every node's data (its shard, in a reduction) is cut into, ``chunk_bytes``
    the size of one. In one timestep a link carries one chunk.
    """

    family: Literal["xtree"] = "xtree"
    network: NetworkSpec
    collective: Literal["allgather", "reduce_scatter", "allreduce"] = "allgather"
    chunks: Annotated[int, Field(ge=1, le=100_000)]
    chunk_bytes: Annotated[float, Field(gt=0), Unit("bytes")] = 1_048_576.0

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        faults = network_faults(raw.get("network"))
        network, chunks = raw.get("network"), raw.get("chunks")
        if not faults and isinstance(network, dict) and isinstance(chunks, int) and chunks >= 1:
            nodes = node_count(network)
            if nodes is not None and (count := nodes * (nodes - 1) * chunks) > MAX_TRANSFERS:
                faults.append(
                    Fault("chunks", f"makes {count} transfers, at most {MAX_TRANSFERS} are supported", chunks, True)
                )
        return faults

    @cached_property
    def topology(self) -> Network:
        """The network as arrays."""
        return built(self.network)

    @cached_property
    def task(self) -> Collective:
        """The collective with its chunk owners; chunk ``k`` belongs to node ``k // chunks``."""
        return COLLECTIVES[self.collective](self.topology.nodes, self.chunks)

    @property
    def total_chunks(self) -> int:
        """N * C."""
        return self.topology.nodes * self.chunks


def suited(instance: XTreeInstance, method: str) -> bool:
    """Whether a default method fits: the published greedy comes in two forms, for allgather and for reductions, and
    ``forest`` is for allreduce."""
    if method == "forest":
        return instance.collective == "allreduce"
    return method != ("mirror_xtree" if instance.collective == "allgather" else "xtree")


def size(instance: XTreeInstance) -> int:
    """Return the number of nodes."""
    return instance.topology.nodes
