"""Schedules for people: a text per step."""

from __future__ import annotations

import numpy as np

from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import Solution, StepCount

MAX_CIRCUITS, MAX_STEPS = 24, 60


def describe(instance: OpTreeInstance, solution: Solution) -> str:
    """Per step its circuits as ``src>dst:item@wavelength`` (``<`` for counterclockwise and,
    on a grid, for down); for a plan what it counts."""
    if isinstance(solution, StepCount):
        numbers = f" {', '.join(map(str, solution.numbers))}" if solution.numbers else ""
        what = {
            "formula": "published formula at depth",
            "wrht": "published WRHT count, variant",
            "stages": "stages of radix",
        }
        title = what.get(solution.algorithm, f"published count: {solution.algorithm}")
        return f"{title}{numbers}; counts steps, no circuits"
    lines = []
    hops = solution.hops(instance)
    for step in range(1, min(solution.steps, MAX_STEPS) + 1):
        now = np.flatnonzero(solution.step == step)
        shown = [
            f"{solution.src[i]}{'<' if solution.direction[i] % 2 else '>'}{solution.dst[i]}"
            f":{solution.origin[i]}@{solution.wavelength[i]}"
            for i in now[:MAX_CIRCUITS]
        ]
        more = f" … {len(now) - MAX_CIRCUITS} more" if len(now) > MAX_CIRCUITS else ""
        share = hops[now].sum() / (instance.directed_links * instance.wavelengths)
        longest = int(hops[now].max(initial=0))
        lines.append(
            f"step {step:>3} ({len(now)} circuits up to {longest} hops, {100 * share:.0f} % in use): "
            f"{' '.join(shown)}{more}"
        )
    if solution.steps > MAX_STEPS:
        lines.append(f"… {solution.steps - MAX_STEPS} more steps (--csv prints all)")
    return "\n".join(lines)
