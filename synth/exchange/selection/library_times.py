"""The time of a library's own algorithms on a machine: their moves, replayed by the family's timing.

What the library is told beside the algorithm is chosen with it: segments among :data:`SEGMENTS`, chains among
:data:`CHAINS`. Of more segments than :data:`FEW` the others take the time that each of the last of so many takes, if
it is one time; else the segment is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from synth.errors import InputError
from synth.exchange.forms import in_seconds
from synth.exchange.selection import library_moves as shapes
from synth.exchange.selection.library_messages import WHOLE, Moves
from synth.exchange.selection.library_moves import Shape
from synth.instance import Instance

Told = Mapping[str, int | str]
SEGMENTS = (2**13, 2**16, 2**19)  # bytes; beside them none
CHAINS = (2, 4)  # chains behind a root
FEW = 64  # segments that are replayed
ALIKE_TIMES = 1.03  # times of which the larger segments count as the quicker: every message costs a library time
STEADY = 0.01  # by which part of itself the time of a segment may still change there
MOST_MOVES = 40_000  # of one call


@dataclass(frozen=True)
class Algorithm:
    """One of a library's algorithms: how a buffer is cut (``even``: into as many pieces as ranks, ``power``: as the
    greatest power of two among them, or a number), and whether it is sent in segments."""

    shape: Shape
    cut: int | str = 1
    segmented: bool = False
    told: Told | None = None


def _chains(*counts: int) -> list[Algorithm]:
    trees = [(count, partial(shapes.chain, fanout=count)) for count in counts]
    return [Algorithm(shapes.along(tree), segmented=True, told={"fanout": count}) for count, tree in trees]


_PIPELINE, _BINARY, _BINOMIAL = (
    [Algorithm(shapes.along(tree), segmented=True)] for tree in (shapes.chain, shapes.binary, shapes.binomial)
)
_LINEAR = [Algorithm(shapes.linear)]
_RING, _KNOMIAL_TREE = [Algorithm(shapes.ring_allgather)], [Algorithm(shapes.along(shapes.knomial))]
_RABENSEIFNER, _DOUBLE_TREE = [Algorithm(shapes.rabenseifner_allreduce, "power")], [Algorithm(shapes.double_tree, 2)]
_HALVING = [Algorithm(shapes.halving_reduce_scatter)]
# by library and collective: the library's word for what is the same algorithm here, the variants of it that it knows
ALGORITHMS: Mapping[str, Mapping[str, Mapping[str, list[Algorithm]]]] = {
    "ompi": {
        "allreduce": {
            "recursive_doubling": [Algorithm(shapes.doubling_allreduce)],
            "ring": [Algorithm(shapes.ring_allreduce, "even")],
            "rabenseifner": _RABENSEIFNER,
        },
        "allgather": {
            "bruck": [Algorithm(shapes.bruck_allgather, told={"fanout": 2})],
            "recursive_doubling": [Algorithm(shapes.doubling_allgather)],
            "ring": _RING,
            "neighbor": [Algorithm(shapes.neighbour_exchange)],
        },
        "reduce_scatter": {
            "recursive_halving": _HALVING,
            "ring": [Algorithm(shapes.ring_reduce_scatter)],
        },
        "reduce_scatter_block": {"recursive_halving": _HALVING},
        "alltoall": {
            "linear": [Algorithm(shapes.to_all)],
            "pairwise": [Algorithm(shapes.pairwise)],
            "modified_bruck": [Algorithm(shapes.bruck_alltoall)],
        },
        "broadcast": {
            "basic_linear": _LINEAR,
            "chain": _chains(*CHAINS),
            "pipeline": _PIPELINE,
            "binary_tree": _BINARY,
            "binomial": _BINOMIAL,
            "scatter_allgather": [Algorithm(shapes.scatter_doubling_broadcast, "even")],
            "scatter_allgather_ring": [Algorithm(shapes.scatter_ring_broadcast, "even")],
        },
        "reduce": {
            "linear": _LINEAR,
            "chain": _chains(*CHAINS),
            "pipeline": _PIPELINE,
            "binary": _BINARY,
            "binomial": _BINOMIAL,
            "rabenseifner": [Algorithm(shapes.rabenseifner_reduce, "power")],
        },
        "gather": {"basic_linear": _LINEAR, "binomial": [Algorithm(shapes.binomial_gather)]},
        "scatter": {"basic_linear": _LINEAR, "binomial": [Algorithm(shapes.binomial_scatter)]},
    },
    "ucc": {
        "allreduce": {
            "knomial": [Algorithm(shapes.knomial_allreduce)],
            "sra_knomial": _RABENSEIFNER,
            "dbt": _DOUBLE_TREE,
            "ring": [Algorithm(shapes.ring_allreduce, "even")],
        },
        "allgather": {
            "knomial": [Algorithm(shapes.doubling_allgather)],
            "ring": _RING,
            "neighbor": [Algorithm(shapes.neighbour_exchange)],
            "bruck": [Algorithm(shapes.bruck_allgather)],
            "linear": [Algorithm(shapes.to_all)],
        },
        "reduce_scatter": {"ring": [Algorithm(shapes.two_rings_reduce_scatter, 2)], "knomial": _HALVING},
        "alltoall": {"pairwise": [Algorithm(shapes.to_all)], "bruck": [Algorithm(shapes.bruck_alltoall)]},
        "broadcast": {"knomial": _KNOMIAL_TREE, "dbt": _DOUBLE_TREE},
        "reduce": {"knomial": _KNOMIAL_TREE, "dbt": _DOUBLE_TREE},
        "gather": {"knomial": [Algorithm(shapes.knomial_gather)]},
    },
}  # fmt: skip
ALIKE = {"reduce_scatter_block": "reduce_scatter"}  # collectives of a library that are one here


def preferred(known: Sequence[tuple[float, Told]]) -> tuple[float, Told]:
    """Of variants the one of the fewest segments among those that are as good as the quickest."""
    most = min(value for value, _ in known) * ALIKE_TIMES
    return min(
        (one for one in known if one[0] <= most), key=lambda one: (-(int(one[1].get("segment", 0)) or 2**62), one[0])
    )


def cut_of(how: int | str, ranks: int) -> int:
    """Into how many pieces a buffer is cut."""
    if isinstance(how, int):
        return how
    return ranks if how == "even" else 1 << (ranks.bit_length() - 1)


def members_of(instance: Instance) -> tuple[int, ...]:
    """The process group."""
    return tuple(getattr(instance, "members", ()))


class Replay:
    """A machine on which calls are replayed. ``ground``: an alltoall on it."""

    def __init__(self, ground: Instance) -> None:
        self.ground, self.ranks = ground, len(members_of(ground))
        self._steady: dict[tuple[Shape, str, int, int], tuple[float, float] | None] = {}

    def seconds(self, collective: str, size: int, algorithm: Algorithm, root: int = 0) -> Iterator[tuple[float, Told]]:
        """The times of an algorithm's variants at a size in bytes from a root (its place among the ranks), and what the
        library is told of each. Nothing where the library takes another algorithm for so many ranks. Raises
        :class:`InputError` where there are too many messages, or where the machine cannot make them."""
        told, call = algorithm.told or {}, (collective, root)
        if not algorithm.segmented:
            part = size if collective in WHOLE else size // self.ranks
            found = self._replayed(call, part, algorithm.shape, cut_of(algorithm.cut, self.ranks))
            if found is not None:
                yield found, told
            return
        for segment in (0, *(one for one in SEGMENTS if one < size)):
            found = self._in_segments(call, size, algorithm.shape, segment or size)
            if found is not None:
                yield found, {**told, "segment": segment}

    def _in_segments(self, call: tuple[str, int], size: int, shape: Shape, segment: int) -> float | None:
        """Seconds of a buffer in segments as even as can be; None where many segments are not steady after few."""
        count = -(-size // segment)
        if count <= FEW:
            return self._replayed(call, size, shape, count)
        key = (shape, *call, segment)
        if key not in self._steady:
            self._steady[key] = self._after_few(call, shape, segment)
        steady = self._steady[key]
        return None if steady is None else steady[0] + (size / segment - FEW) * steady[1]

    def _after_few(self, call: tuple[str, int], shape: Shape, segment: int) -> tuple[float, float] | None:
        """Seconds of :data:`FEW` segments, and of each that follows; None where these still change."""
        quarter = FEW // 4
        half, most, whole = (self._replayed(call, k * quarter * segment, shape, k * quarter) or 0.0 for k in (2, 3, 4))
        before, each = most - half, whole - most
        return None if abs(each - before) > STEADY * each else (whole, each / quarter)

    def _replayed(self, call: tuple[str, int], part: int, shape: Shape, cut: int) -> float | None:
        """Seconds of a shape for a collective and a root, None where it is another for so many ranks."""
        moves = Moves(call[0], self.ranks, part, cut)
        if not shape(moves):
            return None
        if len(moves.messages) > MOST_MOVES:
            raise InputError(f"{len(moves.messages):,} messages are too many to replay")
        return in_seconds(self.ground, lambda part_bytes: moves.raised(self.ground.name, part_bytes, call[1]))
