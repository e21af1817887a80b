"""Figures of ``synth plan --tokens``: drawn tokens on 64 GPUs in 8 boxes, every plan replayed, every bound verified.

``python tests/benchmarks/token_figures.py [seeds]`` prints a row a skew and way: 4,096 tokens a GPU, top 8 of 256
experts in at most 4 boxes. ``matrix``: the bound of the byte matrix that sends every expert's GPU a copy of its own,
over the plan's seconds: how much every plan of that matrix loses. ``NIC``: tokens' bytes a second through a NIC of the
busiest box, as a share of its 50 GB/s. Processor time of both ways, compiled kernels.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import synth
from synth import kernels

RATE = 50e9  # bytes a second of a NIC
GPUS = 8  # of a box


def main(seeds: int) -> None:
    """Print the table."""
    planner, matrices = synth.TokenPlanner("dgx-h100", boxes=8), synth.Planner("dgx-h100", boxes=8)
    planner.plan(*planner.drawn(tokens=64))
    print(
        "| Zipf | way | ms (median) | gap, % (median, largest) | matrix (least, median) | NIC, % (median) | plan, ms |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for zipf in (0.0, 0.4, 0.8):
        rows: dict[str, list[tuple[float, ...]]] = {"dispatch": [], "combine": []}
        for seed in range(seeds):
            tokens = planner.drawn(zipf=zipf, seed=seed)
            began = time.process_time()
            ways = planner.plan(*tokens)
            spent = (time.process_time() - began) * 1e3
            for way in ways:
                faults = way.check().faults
                if faults:
                    raise SystemExit(f"Zipf {zipf}, seed {seed}, {way.name}: {faults[0]}")
                loses = matrices.plan(way.matrix_bytes).bound / way.seconds
                nic = way.nic_bytes / GPUS / way.seconds / RATE
                rows[way.name].append((way.seconds * 1e3, way.gap * 100, loses, nic * 100, spent))
        for name, found in rows.items():
            seconds, gap, loses, nic, spent_ms = np.array(found).T
            print(
                f"| {zipf} | {name} | {np.median(seconds):.2f} | {np.median(gap):.2f}, {gap.max():.2f} "
                f"| {loses.min():.2f}, {np.median(loses):.2f} | {np.median(nic):.1f} | {np.median(spent_ms):.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    with kernels.mode("compiled"):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
