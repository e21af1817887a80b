"""Figures of ``synth plan``: random demands on clusters, every plan replayed, every bound verified.

``python tests/benchmarks/plan_figures.py [matrices]`` prints the table of models/fabric.md. A row is a machine and a
Zipf skew; the matrices are of three kinds in turn: all pairs of one skewed distribution, every rank a skewed one of its
own, one skewed distribution of receivers for all. Processor time, of the plan alone, compiled kernels.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import synth
from synth import kernels
from synth.arrays import IntArray

CLUSTERS = (("dgx-h100", 8, 1.0), ("dgx-a100", 8, 1.0), ("dgx-h100", 64, 0.01))
SKEWS = (0.5, 1.0, 1.5)
SIZES = (2**20, 2**26, 2**30)  # bytes a rank sends, in turn
REFERENCES = ("fast", "two_step", "spread_out", "direct")
HEAD = "| cluster | skew | plan, ms (median, largest) | gap, % (median, largest) | reference over plan (least) |"


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
    print("|---|---|---:|---:|---:|")
    for machine, boxes, share in CLUSTERS:
        planner = synth.Planner(machine, boxes=boxes)
        ranks = len(planner.ranks)
        rng = np.random.default_rng(0)
        planner.plan(demand(rng, ranks, 1.0, 0, SIZES[-1]))
        for skew in SKEWS:
            spent, gaps, over = [], [], []
            for k in range(max(3, round(matrices * share / len(SKEWS)))):
                wanted = demand(rng, ranks, skew, k % 3, SIZES[k // 3 % len(SIZES)])
                began = time.process_time()
                found = planner.plan(wanted)
                spent.append((time.process_time() - began) * 1e3)
                gaps.append(found.gap * 100)
                faults = found.check().faults
                if faults:
                    raise SystemExit(f"{machine}, {boxes} boxes, skew {skew}, matrix {k}: {faults[0]}")
                if k < 3 and ranks <= 64:
                    values = [synth.solve(found.instance, name, time_limit=1).value for name in REFERENCES]
                    over.append(min(value for value in values if value is not None) / found.seconds)
            columns = [f"{np.median(row):.{digits}f}, {max(row):.{digits}f}" for row, digits in ((spent, 1), (gaps, 2))]
            least = f"{min(over):.3f}" if over else "–"
            print(f"| `{machine} boxes={boxes}` | {skew} | {' | '.join(columns)} | {least} |", flush=True)


if __name__ == "__main__":
    with kernels.mode("compiled"):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
