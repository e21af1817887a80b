"""Collectives: their names, and which chunk (or which contributions to it) stands where before and after."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from synth.arrays import Int32Array

CollectiveName = Literal[
    "allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "reduce", "gather", "scatter"
]
NAMES: tuple[CollectiveName, ...] = get_args(CollectiveName)
ROOTED = ("broadcast", "reduce", "gather", "scatter")
REDUCING = ("reduce_scatter", "allreduce", "reduce")


@dataclass(frozen=True)
class Collective:
    """What a schedule must achieve.

    Chunk ``k`` belongs to node ``owner[k]`` (shape (chunks,)). With ``reduces`` every node starts with a contribution
    to every chunk, otherwise only the owner holds chunk ``k``. With ``to_all`` every node ends with the chunk (or its
    full sum); otherwise only ``target[k]`` needs it.
    """

    name: str
    nodes: int
    owner: Int32Array
    reduces: bool
    to_all: bool
    target: Int32Array | None = None

    @property
    def chunks(self) -> int:
        """Number of distinct chunks."""
        return len(self.owner)


def bus_factor(collective: str, ranks: int) -> Fraction:
    """busbw / algbw of nccl-tests for N ranks."""
    share = Fraction(ranks - 1, ranks)
    match collective:
        case "allreduce":
            return 2 * share
        case "broadcast" | "reduce" | "demand" | "traffic":
            return Fraction(1)
    return share


def _owners(nodes: int, chunks_per_node: int) -> Int32Array:
    if nodes < 1 or chunks_per_node < 1:
        raise ValueError("at least one node and one chunk per node")
    return np.repeat(np.arange(nodes, dtype=np.int32), chunks_per_node)


def allgather(nodes: int, chunks_per_node: int) -> Collective:
    """Every node's ``chunks_per_node`` chunks reach every node. Chunk ``k`` starts at node ``k // chunks_per_node``."""
    return Collective("allgather", nodes, _owners(nodes, chunks_per_node), reduces=False, to_all=True)


def reduce_scatter(nodes: int, chunks_per_node: int) -> Collective:
    """Every chunk's sum over all nodes ends at its owner, every contribution counted exactly once."""
    owner = _owners(nodes, chunks_per_node)
    return Collective("reduce_scatter", nodes, owner, reduces=True, to_all=False, target=owner)


def allreduce(nodes: int, chunks_per_node: int) -> Collective:
    """Every chunk's sum over all nodes ends at every node; the owner is only the name of the shard."""
    return Collective("allreduce", nodes, _owners(nodes, chunks_per_node), reduces=True, to_all=True)


def broadcast(nodes: int, root: int, chunks: int) -> Collective:
    """The root's chunks reach every node."""
    return Collective("broadcast", nodes, np.full(chunks, root, dtype=np.int32), reduces=False, to_all=True)


def alltoall(nodes: int) -> Collective:
    """One chunk per ordered pair: chunk ``s * nodes + d`` goes from ``s`` to ``d``."""
    owner, target = np.divmod(np.arange(nodes * nodes, dtype=np.int32), np.int32(nodes))
    return Collective("alltoall", nodes, owner, reduces=False, to_all=False, target=target)


COLLECTIVES = {"allgather": allgather, "reduce_scatter": reduce_scatter, "allreduce": allreduce}
