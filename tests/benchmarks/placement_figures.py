"""Figures of ``synth place``: placements by a drawn trace, beside EPLB's rule, and what they make of tokens held out.

``python tests/benchmarks/placement_figures.py [seeds]`` prints a row a skew and number of groups: 256 experts in 320
copies on 64 GPUs in 8 boxes. Even tokens of every GPU (top 8, 512 of them) are the trace, odd ones are held out.
"over" is the largest load over the mean, less one, in percent: median and largest over the seeds.
"""

from __future__ import annotations

import sys

import numpy as np

import synth
from synth.arrays import IntArray
from synth.options import RunOptions
from synth.placement.program import placed
from synth.placement.question import asked, faults, loads
from synth.placement.rule import rule

EXPERTS, COPIES = 256, 320


def load_of(goals: IntArray) -> IntArray:
    """Tokens of every expert."""
    load: IntArray = np.bincount(goals.ravel(), minlength=EXPERTS)
    return load


def over(load: IntArray, placement: IntArray) -> float:
    """The largest load over the mean, less one, in percent."""
    return float(max(loads(load, placement)) / load.sum() * len(placement) - 1) * 100


def main(seeds: int) -> None:
    """Print the table."""
    planner = synth.TokenPlanner("dgx-h100", boxes=8)
    print("| Zipf | groups | EPLB over, % | ours over, % | gap, % | EPLB held out over, % | ours held out over, % |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for zipf in (0.0, 0.4, 0.8):
        for groups in (1, 32):
            rows = []
            for seed in range(seeds):
                _, goals = planner.drawn_experts(tokens=1024, zipf=zipf, seed=seed)
                trace, other = load_of(goals[::2]), load_of(goals[1::2])
                question = asked(trace, 8, 64, COPIES, groups)
                old = rule(question)
                found, by_rule = placed(question, RunOptions(10.0, relative_gap=0.0, seed=seed))
                if faults(question, found.placement) or found.value > by_rule:
                    raise SystemExit(f"Zipf {zipf}, {groups} groups, seed {seed}: no placement, or a worse one")
                gap = float(1 - found.bound / found.value) * 100
                rows.append((over(trace, old), over(trace, found.placement), gap, over(other, old),
                             over(other, found.placement)))  # fmt: skip
            cells = [f"{np.median(column):.2f}, {column.max():.2f}" for column in np.array(rows).T]
            print(f"| {zipf} | {groups} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
