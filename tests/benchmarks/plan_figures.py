"""Figures of ``synth plan``: random demands on clusters, every plan replayed, every bound verified.

``python tests/benchmarks/plan_figures.py [matrices]`` prints a table, whose worst rows are in
models/fabric-demands.md. A row is a machine, sizes of messages and a Zipf skew; the matrices are of three kinds in
turn: all pairs of one skewed distribution, every rank a skewed one of its own, one skewed distribution of receivers
for all. Processor time of the plan alone, and of its replay with the check of its bound; compiled kernels. ``ran``: of
how many plans in a hundred a reference ran, because its lower bound did not tell that it is no quicker.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import synth
from synth import kernels
from synth.arrays import IntArray
from synth.text.amounts import size

# bytes that a rank sends, in turn
LARGE, SMALL = (tuple(map(size, text.split())) for text in ("1MiB 64MiB 1GiB", "4KiB 16KiB 64KiB 256KiB"))
CLUSTERS = (
    ("dgx-h100", 8, 1.0, LARGE),
    ("dgx-a100", 8, 1.0, LARGE),
    ("dgx-h100", 8, 0.15, SMALL),
    ("dgx-a100", 8, 0.15, SMALL),
    ("dgx-h100", 64, 0.02, LARGE),
    ("dgx-a100", 64, 0.02, LARGE),
    ("dgx-h100", 64, 0.04, SMALL),
    ("dgx-a100", 64, 0.04, SMALL),
)
WORDS = {LARGE: "large", SMALL: "small"}
SKEWS = (0.5, 1.0, 1.5)
REFERENCES = ("fast", "two_step", "spread_out", "direct")
HEAD = (
    "| cluster | messages | skew | plan, ms (median, largest) | check, ms | gap, % (median, largest) | ran, % "
    "| reference over plan (least) |"
)


def demand(rng: np.random.Generator, ranks: int, skew: float, kind: int, size: int) -> IntArray:
    """A random demand, about ``size`` bytes a rank; nothing on the diagonal."""
    if kind == 0:
        share = 1 / np.arange(1, ranks**2 + 1) ** skew
        found = rng.permutation(share / share.sum()).reshape(ranks, ranks) * ranks
    else:
        share = 1 / np.arange(1, ranks + 1) ** skew
        rows = [rng.permutation(share / share.sum()) for _ in range(ranks)]
        found = np.array(rows if kind == 1 else [rows[0]] * ranks)
        found *= rng.uniform(0.5, 1.5, (ranks, ranks))
    whole: IntArray = (found * size).astype(np.int64)
    np.fill_diagonal(whole, 0)
    return whole


def main(matrices: int) -> None:
    """Print the table."""
    print(HEAD)
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for machine, boxes, share, sizes in CLUSTERS:
        planner = synth.Planner(machine, boxes=boxes)
        ranks = len(planner.ranks)
        rng = np.random.default_rng(0)
        planner.plan(demand(rng, ranks, 1.0, 0, sizes[-1]))
        for skew in SKEWS:
            spent, checked, gaps, over, ran = [], [], [], [], 0
            for k in range(max(3, round(matrices * share / len(SKEWS)))):
                wanted = demand(rng, ranks, skew, k % 3, sizes[k // 3 % len(sizes)])
                began = time.process_time()
                found = planner.plan(wanted)
                spent.append((time.process_time() - began) * 1e3)
                gaps.append(found.gap * 100)
                ran += bool(found.tried)
                began = time.process_time()
                faults = found.check().faults
                checked.append((time.process_time() - began) * 1e3)
                if faults:
                    raise SystemExit(f"{machine}, {boxes} boxes, skew {skew}, matrix {k}: {faults[0]}")
                if k < 3 and ranks <= 64:
                    values = [synth.solve(found.instance, name, time_limit=1).value for name in REFERENCES]
                    over.append(min(value for value in values if value is not None) / found.seconds)
            columns = [
                f"{np.median(row):.{digits}f}, {max(row):.{digits}f}"
                for row, digits in ((spent, 1), (checked, 1), (gaps, 2))
            ]
            columns += [f"{100 * ran / len(spent):.1f}", f"{min(over):.3f}" if over else "–"]
            print(f"| `{machine} boxes={boxes}` | {WORDS[sizes]} | {skew} | {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    with kernels.mode("compiled"):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
