"""The published algorithms (kind reference), each an explicit pattern of rounds, ranks and blocks for every job.

Cost: O(p log p) rows a job, O(p^2) for ring, pairwise and alltoall. No guarantee on global traffic; Bine's partners are
at most 2/3 as far away as binomial ones, so it saves at most about a third on any step (De Sensi et al., section 2.4).
A method that has no form of the collective at hand raises :class:`UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.bine.instance import TREES, BineInstance
from synth_models.bine.parts import trees
from synth_models.bine.parts.butterfly import fold, partners, torus_partners
from synth_models.bine.parts.rows import in_pieces
from synth_models.bine.references import exchanges
from synth_models.bine.references import ring_algorithms as linear
from synth_models.bine.references.exchanges import Exchange
from synth_models.bine.solution import Steps, join

MAX_ROWS = 6_000_000


def pattern(
    method: str, collective: str, vector: str, ranks: int, root: int, torus: list[int] | None, own: Mapping[str, Any]
) -> Steps:
    """Rows of one job by the named method. Raises :class:`UnsupportedError` when it has no such collective."""
    tree = collective in TREES and not (vector == "large" and collective in ("broadcast", "reduce"))
    size = ranks * ranks if collective == "alltoall" else ranks
    if size * (ranks if method in ("ring", "bucket") else 1) > MAX_ROWS * 4:
        raise UnsupportedError(f"{method} {collective} on {ranks} ranks takes too many rows to write down")
    order = own.get("order") or ("halving" if tree else "doubling")
    match method:
        case "binomial_halving" | "binomial_doubling" if tree:
            return trees.on_tree(trees.binomial(ranks, root, method.removeprefix("binomial_")), collective)
        case "binomial_halving" if collective in TREES:  # MPICH: halving scatter, then doubling allgather
            kind = partial(partners, "recursive", "halving")
            return exchanges.run(kind, ranks, collective, vector, root)
        case "binomial_doubling" if collective in TREES:
            return exchanges.run(partial(partners, "recursive", "doubling"), ranks, collective, vector, root)
        case "bine" if tree:
            return _laid_out(trees.on_tree(trees.bine(ranks, root, order), collective), own)
        case "bine":
            steps = exchanges.run(partial(partners, "bine", order), ranks, collective, vector, root)
            return _laid_out(steps, own, ranks, collective)
        case "recursive" | "swing" if collective not in TREES:
            steps = exchanges.run(partial(partners, method, order), ranks, collective, vector, root)
            return in_pieces(steps) if method == "swing" else steps
        case "ring" if collective == "alltoall":
            return linear.pairwise_alltoall(ranks)
        case "ring" | "bucket" if collective in ("allgather", "reduce_scatter") or (collective, vector) == (
            "allreduce", "large",
        ):  # fmt: skip
            if method == "bucket" and torus is None:
                raise UnsupportedError("bucket needs the sides of a torus")
            return linear.bucket(torus if method == "bucket" and torus else [ranks], collective)
        case "bruck" if collective == "allgather":
            return linear.bruck_allgather(ranks)
        case "bruck" if collective == "alltoall":
            return linear.bruck_alltoall(ranks)
        case "sparbit" if collective == "allgather":
            return linear.sparbit_allgather(ranks)
        case "bine_torus":
            return _on_torus(torus, collective, vector)
    raise UnsupportedError(f"{method} has no {vector + ' ' if collective == 'allreduce' else ''}{collective}")


def _laid_out(steps: Steps, own: Mapping[str, Any], ranks: int = 0, collective: str = "") -> Steps:
    """Bine's ways with blocks that are not neighbours: permute (one piece), send the pieces, or swap at the end."""
    way = own.get("blocks", "permute")
    if way == "pieces":
        return in_pieces(steps)
    if way == "exchange" and collective in ("reduce_scatter", "allgather"):
        if ranks & (ranks - 1):
            raise UnsupportedError("blocks=exchange is for powers of two")
        return _exchanged(steps, collective)
    return steps


def _exchanged(steps: Steps, collective: str) -> Steps:
    """Blocks stay in the order of their ids and are moved as if permuted, so that the rank with place i is given block
    i; one more round takes every block to its rank (before an allgather: from it)."""
    size = len(steps.layout)
    at = np.arange(size)
    move = steps.layout != at
    before = collective == "allgather"
    last = 0 if before else int(steps.round.max()) + 1
    src, dst = (at, steps.layout) if before else (steps.layout, at)
    extra = (np.full(size, last), src, dst, at, np.ones(size, dtype=np.int64), np.zeros(size, dtype=bool))
    main = (steps.round + before, steps.src, steps.dst, steps.first, steps.count, steps.adds)
    parts = [tuple(c[move] for c in extra), main] if before else [main, tuple(c[move] for c in extra)]
    step, begin, end, first, count, adds = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    return Steps(step, begin, end, first, count, adds, at)


def _on_torus(torus: list[int] | None, collective: str, vector: str) -> Steps:
    """One Bine collective per direction (dimension and sign), each on its share of the vector, all at once."""
    if torus is None or collective not in ("allgather", "reduce_scatter", "allreduce") or (
        collective == "allreduce" and vector == "small"
    ):  # fmt: skip
        raise UnsupportedError("bine_torus is for allgather, reduce_scatter and large allreduce on a torus")
    if any(side & (side - 1) for side in torus):
        raise UnsupportedError("bine_torus needs sides that are powers of two")
    sides = [side for side in torus if side > 1]
    ranks = int(np.prod(torus))
    parts = []
    for share in range(2 * len(sides)):
        exchange = Exchange(torus_partners(sides, share // 2, share % 2 == 1), fold(ranks))
        step = exchange.reduce_scatter(0) if collective != "allgather" else 0
        if collective != "reduce_scatter":
            exchange.allgather(step)
        parts.append(exchange.rows.finish(exchange.order + share * ranks))
    for share, part in enumerate(parts):
        parts[share] = replace(part, first=part.first + share * ranks)
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("round", "src", "dst", "first", "count", "adds", "layout")
    }
    order = np.argsort(columns["round"], kind="stable")
    rows = {name: column[order] for name, column in columns.items() if name != "layout"}
    return Steps(**rows, layout=columns["layout"], shares=len(parts))


def _solve(method: str, instance: BineInstance, options: RunOptions) -> Outcome:
    own = options.method
    known: dict[int, Steps] = {}
    parts, rows = [], 0
    for groups in instance.allocations:
        ranks = len(groups)
        if ranks not in known:
            known[ranks] = pattern(
                method, instance.collective, instance.vector, ranks, instance.root, instance.torus, own
            )
        rows += len(known[ranks].round)
        if rows > MAX_ROWS:
            raise UnsupportedError(
                f"more than {MAX_ROWS} rows; synth_models.bine.paper.traffic counts without writing them down"
            )
        parts.append(known[ranks])
    plan = join(parts)
    _fits(method, instance, parts)
    return Outcome("finished", plan)


def _fits(method: str, instance: BineInstance, parts: list[Steps]) -> None:
    """Raise :class:`UnsupportedError` when the algorithm is no solution of the instance's problem."""
    if instance.problem == "butterfly" and method != "recursive":
        raise UnsupportedError(f"{method} does not pair ranks along the dimensions of a hypercube")
    if instance.problem == "tree":
        for groups, steps in zip(instance.allocations, parts, strict=True):
            if steps.round.max() >= instance.round_limit(len(groups)):
                raise UnsupportedError(f"{method} takes {steps.round.max() + 1} rounds, more than the problem allows")


def binomial_halving(instance: BineInstance, options: RunOptions) -> Outcome:
    """Distance-halving binomial trees as in MPICH; large: halving scatter or reduce-scatter."""
    return _solve("binomial_halving", instance, options)


def binomial_doubling(instance: BineInstance, options: RunOptions) -> Outcome:
    """Distance-doubling binomial trees as in Open MPI; large: doubling scatter or reduce-scatter."""
    return _solve("binomial_doubling", instance, options)


def recursive(instance: BineInstance, options: RunOptions) -> Outcome:
    """Recursive halving/doubling: partner ``r xor 2^s``, folded for other numbers of ranks."""
    return _solve("recursive", instance, options)


def bine(instance: BineInstance, options: RunOptions) -> Outcome:
    """Bine trees and butterflies. ``order`` (halving, doubling) and ``blocks`` (permute, pieces, exchange) are its own
    parameters; trees are distance-halving and butterflies distance-doubling unless given."""
    return _solve("bine", instance, options)


def swing(instance: BineInstance, options: RunOptions) -> Outcome:
    """Swing: Bine's partners in doubling order, blocks sent in the pieces they lie in."""
    return _solve("swing", instance, options)


def ring(instance: BineInstance, options: RunOptions) -> Outcome:
    """The ring (alltoall: the p-1 shifts)."""
    return _solve("ring", instance, options)


def bucket(instance: BineInstance, options: RunOptions) -> Outcome:
    """Bucket: one ring per dimension of a torus, one dimension after the other."""
    return _solve("bucket", instance, options)


def bruck(instance: BineInstance, options: RunOptions) -> Outcome:
    """Bruck's concatenation (allgather) and radix-2 index (alltoall) algorithms."""
    return _solve("bruck", instance, options)


def sparbit(instance: BineInstance, options: RunOptions) -> Outcome:
    """Sparbit's allgather."""
    return _solve("sparbit", instance, options)


def bine_torus(instance: BineInstance, options: RunOptions) -> Outcome:
    """Bine along the dimensions of a torus, one collective per direction on a share of the vector."""
    return _solve("bine_torus", instance, options)


ALL: dict[str, Callable[[BineInstance, RunOptions], Outcome]] = {
    function.__name__: function
    for function in (
        binomial_halving, binomial_doubling, recursive, bine, swing, ring, bucket, bruck, sparbit, bine_torus,
    )
}  # fmt: skip
