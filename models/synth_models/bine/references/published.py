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
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.bine.instance import TREES, BineInstance
from synth_models.bine.parts import trees
from synth_models.bine.parts.butterfly import fold, partners, torus_partners
from synth_models.bine.parts.steps import in_pieces
from synth_models.bine.references import exchanges, ring_algorithms
from synth_models.bine.references.exchanges import Exchange
from synth_models.bine.solution import Steps, concatenated, join

MAX_ROWS = 6_000_000


def pattern(
    method: str, collective: str, vector: str, ranks: int, root: int, torus: list[int] | None, own: Mapping[str, Any]
) -> Steps:
    """Rows of one job by the named method. Raises :class:`UnsupportedError` when it has no such collective."""
    tree = collective in TREES and not (vector == "large" and collective in ("broadcast", "reduce"))
    size = ranks * ranks if collective == "alltoall" else ranks
    if size * (ranks if method in ("ring", "bucket") else 1) > MAX_ROWS * 4:
        raise UnsupportedError(f"{method} {collective} on {ranks} ranks takes too many rows to write down")
    halves = _halves(collective, vector)
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
            return ring_algorithms.pairwise_alltoall(ranks)
        case "ring" | "bucket" if halves:
            if method == "bucket" and torus is None:
                raise UnsupportedError("bucket needs the sides of a torus")
            return ring_algorithms.bucket(torus if method == "bucket" and torus else [ranks], collective)
        case "bruck" if collective == "allgather":
            return ring_algorithms.bruck_allgather(ranks)
        case "bruck" if collective == "alltoall":
            return ring_algorithms.bruck_alltoall(ranks)
        case "sparbit" if collective == "allgather":
            return ring_algorithms.sparbit_allgather(ranks)
        case "bine_torus":
            return _on_torus(torus, collective, vector)
    raise UnsupportedError(f"{method} has no {vector + ' ' if collective == 'allreduce' else ''}{collective}")


def _halves(collective: str, vector: str) -> bool:
    """Whether it is a reduce-scatter, an allgather or the two in a row."""
    return collective in ("allgather", "reduce_scatter") or (collective, vector) == ("allreduce", "large")


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
    if torus is None or not _halves(collective, vector):
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
    parts = [replace(part, first=part.first + share * ranks) for share, part in enumerate(parts)]
    columns = concatenated(parts)
    order = np.argsort(columns["round"], kind="stable")
    rows = {name: column[order] for name, column in columns.items() if name != "layout"}
    return Steps(**rows, layout=columns["layout"], shares=len(parts))


def _rows(method: str, instance: BineInstance, options: RunOptions) -> Outcome:
    if instance.problem == "butterfly" and method != "recursive":
        raise UnsupportedError(f"{method} does not pair ranks along the dimensions of a hypercube")
    known: dict[int, Steps] = {}
    parts, rows = [], 0
    for groups in instance.allocations:
        ranks = len(groups)
        if ranks not in known:
            form = (instance.collective, instance.vector, ranks, instance.root, instance.torus)
            known[ranks] = pattern(method, *form, options.method)
        rows += len(known[ranks])
        if rows > MAX_ROWS:
            raise UnsupportedError(f"more than {MAX_ROWS} rows to write down")
        parts.append(known[ranks])
    messages = join(parts)
    if instance.problem == "tree":
        _demand_few_rounds(method, instance, parts)
    return Outcome("finished", messages)


def _demand_few_rounds(method: str, instance: BineInstance, parts: list[Steps]) -> None:
    """Raise :class:`UnsupportedError` when the algorithm takes more rounds than the problem ``tree`` allows."""
    for groups, steps in zip(instance.allocations, parts, strict=True):
        if steps.round.max() >= instance.round_limit(len(groups)):
            raise UnsupportedError(f"{method} takes {steps.round.max() + 1} rounds, more than the problem allows")


ALL: dict[str, Callable[[BineInstance, RunOptions], Outcome]] = {}


def _published(name: str, words: str) -> Callable[[BineInstance, RunOptions], Outcome]:
    """The method of that name; ``words`` say what it is."""

    def solve(instance: BineInstance, options: RunOptions) -> Outcome:
        return _rows(name, instance, options)

    solve.__name__, solve.__doc__ = name, words
    return ALL.setdefault(name, solve)


binomial_halving = _published(
    "binomial_halving", "Distance-halving binomial trees as in MPICH; large: halving scatter or reduce-scatter."
)
binomial_doubling = _published(
    "binomial_doubling", "Distance-doubling binomial trees as in Open MPI; large: doubling scatter or reduce-scatter."
)
recursive = _published("recursive", "Recursive halving/doubling: partner ``r xor 2^s``, folded for other p.")
bine = _published(
    "bine",
    """Bine trees and butterflies. ``order`` (halving, doubling) and ``blocks`` (permute, pieces, exchange) are its own
    parameters; trees are distance-halving and butterflies distance-doubling unless given.""",
)
swing = _published("swing", "Swing: Bine's partners in doubling order, blocks sent in the pieces they lie in.")
ring = _published("ring", "The ring (alltoall: the p-1 shifts).")
bucket = _published("bucket", "Bucket: one ring per dimension of a torus, one dimension after the other.")
bruck = _published("bruck", "Bruck's concatenation (allgather) and radix-2 index (alltoall) algorithms.")
sparbit = _published("sparbit", "Sparbit's allgather.")
bine_torus = _published("bine_torus", "Bine along a torus's dimensions, one collective per direction, each on a share.")
