"""Method ``closed_form``: the paper's rule (section 2) with the corrected condition ``m <= l - 1 <= d``.

The text asks for ``1 <= l - 1 <= m``. Phase ``(s, t, u)`` moves the layer by ``s`` and the slot by ``u``; ``t = 0``
keeps the column and uses spine ``{j, j + k + 1 mod l}``, ``t > 0`` moves it by ``t + k + 1``, or by ``t + k + 2`` once
that reaches ``l``. N = n * l * m phases, in closed form: O(l * l * m + N) numbers. Of a partial all-to-all it keeps
what is asked for (``patterns.py``), which proves nothing about fewer phases.
"""

from __future__ import annotations

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.instance import MAX_TRANSFERS, MLFMInstance
from synth_models.mlfm.references.patterns import restricted
from synth_models.mlfm.solution import ProductPhases

MAX_PAIRS = 400_000_000  # pairs the check can mark off


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``closed_form``. Raises :class:`UnsupportedError` where the rule does not hold.

    With ``as_printed`` the printed rule is applied to any block, so that the check shows where it fails.
    """
    if instance.block is None:
        raise UnsupportedError("closed_form needs a block of servers, the job is a subset")
    n, columns, m = instance.block.layers, instance.block.columns, instance.block.servers
    if instance.any_link_failed or instance.ranks < n * columns * m:
        raise UnsupportedError("closed_form needs a machine without failures")
    if instance.ranks**2 > MAX_PAIRS:
        raise SizeLimitError(f"more than {MAX_PAIRS} transfers to replay")
    solution = printed_rule(instance, n, columns, m)
    if options.method.get("as_printed", False):
        return Outcome("finished", solution=solution, message="the rule as printed; the check says where it fails")
    if not m <= columns - 1 <= instance.d:
        raise UnsupportedError(
            f"closed_form needs m <= l-1 <= d (the text's 1 <= l-1 <= m is misprinted); here l = {columns}, m = {m}, "
            f"d = {instance.d}. {_failure(instance, solution)}; -O as_printed=on replays it"
        )
    if instance.demand is not None:
        if instance.ranks**2 > MAX_TRANSFERS:
            raise SizeLimitError(f"of a demand at most {MAX_TRANSFERS} pairs of servers; here {instance.ranks**2}")
        return Outcome("finished", solution=restricted(instance, solution))
    return Outcome("finished", solution=solution)


def printed_rule(instance: MLFMInstance, n: int, columns: int, m: int) -> ProductPhases:
    """The rule exactly as printed, for any block; where it names no spine, none is stored."""
    t = np.arange(columns, dtype=np.int32)[:, None, None]
    j = np.arange(columns, dtype=np.int32)[None, :, None]
    k = np.arange(m, dtype=np.int32)[None, None, :]
    step = t + k + 1
    moved = (j + np.where(step < columns, step, step + 1)) % columns
    column = np.where(t == 0, j, moved)
    partner = np.where(t == 0, (j + k + 1) % columns, moved)
    spine = instance.spine_number[np.broadcast_to(j, partner.shape), partner].astype(np.int32)
    s, pattern, u = (
        a.ravel().astype(np.int32) for a in np.meshgrid(np.arange(n), np.arange(columns), np.arange(m), indexing="ij")
    )
    return ProductPhases(n, pattern, s, u, np.ascontiguousarray(column, dtype=np.int32), spine)


def _failure(instance: MLFMInstance, solution: ProductPhases) -> str:
    """Where the printed rule goes wrong on this block, in words. Counts by itself, apart from the check."""
    if instance.ranks > 400:
        return "The printed rule fails"
    block = instance.block
    assert block is not None
    leaf, sent = instance.server_leaf, np.zeros((instance.ranks, instance.ranks), dtype=np.int64)
    everyone, clash = np.arange(instance.ranks), None
    for rows in solution.rows(1):
        dest, spine = rows.dest[0], rows.spine[0]
        np.add.at(sent, (everyone, dest), 1)
        bare = np.flatnonzero((spine < 0) & (leaf != leaf[dest]))
        _, index, uses = np.unique(leaf * len(instance.spine_columns) + spine, return_index=True, return_counts=True)
        double = index[(uses > 1) & (spine[index] >= 0)]
        if clash is None and (len(bare) or len(double)):
            s, rest = divmod(rows.first, block.columns * block.servers)
            t, u = divmod(rest, block.servers)
            x = int((bare if len(bare) else double)[0])
            what = "changes layer without a spine" if len(bare) else "shares its up-link with another flow"
            clash = f"in phase (s, t, u) = ({s}, {t}, {u}) server {instance.server_name(x)} {what}"
    never = int((sent == 0).sum())
    often = int((sent > 1).sum())
    pairs = f"{never} of {sent.size} pairs are never sent, {often} more than once"
    return f"The printed rule fails here: {clash}; {pairs}" if clash else f"The printed rule fails here: {pairs}"
