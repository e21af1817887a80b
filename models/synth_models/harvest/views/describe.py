"""Plans for people: a text per step, and a drawing of the times and the topologies."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from synth_models.harvest.check.replay import changed_before, step_times
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import IntArray, Plan

MAX_STEPS, MAX_DRAWN = 40, 8
_COLOURS = {"alpha": "#4477aa", "hops": "#66ccee", "bytes": "#228833", "reconfiguration": "#ee6677"}


def shape_of(links: IntArray, gpus: int) -> str:
    """A topology in a few words: its shifts where all GPUs have the same, else its number of links."""
    shift = (links[:, 1] - links[:, 0]) % gpus
    kinds, at = np.unique(np.stack([shift, links[:, 2]], axis=1), axis=0, return_counts=True)
    if len(kinds) <= 6 and np.all(at == gpus):
        shown = [min(s, s - gpus, key=abs) for s, _ in kinds.tolist()]
        word = "shift " if len(kinds) == 1 else "shifts "
        return word + ", ".join(
            f"{s:+d}" + (f" ({count} links)" if count > 1 else "")
            for s, (_, count) in zip(shown, kinds.tolist(), strict=True)
        )
    return f"{int(links[:, 2].sum())} links between {len(links)} pairs of GPUs"


def describe(instance: HarvestInstance, plan: Plan) -> str:
    """Per step: its time and what it is made of, longest route, theta, and the topology where it changes."""
    times = step_times(instance, plan)
    changed = changed_before(plan)
    lines = []
    for i in range(min(len(instance.steps), MAX_STEPS)):
        if i == 0 or changed[i]:
            before = f", {seconds(times.reconfiguration[i])} to reconfigure" if changed[i] else ""
            lines.append(f"topology: {shape_of(plan.topologies[plan.topology_of_step[i]], instance.gpus)}{before}")
        total = times.alpha[i] + times.delta[i] + times.bandwidth[i]
        hops = "1 hop" if times.hops[i] == 1 else f"{times.hops[i]} hops"
        lines.append(
            f"  step {i}: {len(instance.pairs[i])} pairs, {instance.bytes_per_pair[i]:g} bytes each: {seconds(total)}"
            f" = {seconds(times.alpha[i])} alpha + {seconds(times.delta[i])} for {hops}"
            f" + {seconds(times.bandwidth[i])} for the bytes; theta {times.theta[i]:.4g}"
        )
    if len(instance.steps) > MAX_STEPS:
        lines.append(f"… {len(instance.steps) - MAX_STEPS} more steps (--csv prints all)")
    return "\n".join(lines)


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e9:.4g} ns"


def plot(instance: HarvestInstance, plan: Plan, title: str) -> Figure:
    """Above: the time of every step, split. Below: the topologies in the order of use, GPUs on a circle."""
    times = step_times(instance, plan)
    starts = [0, *np.flatnonzero(changed_before(plan)).tolist()]
    drawn = starts[:MAX_DRAWN]
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    figure.suptitle(title)
    grid = figure.add_gridspec(2, len(drawn), height_ratios=(1.1, 1))
    axes = figure.add_subplot(grid[0, :])
    parts = (times.reconfiguration, times.alpha, times.delta, times.bandwidth)
    names = ("reconfiguration", "alpha", "hops", "bytes")
    unit, factor = ("ms", 1e3) if times.total > 1e-2 else ("us", 1e6)
    bottom = np.zeros(len(instance.steps))
    for name, part in zip(names, parts, strict=True):
        axes.bar(np.arange(len(bottom)), part * factor, bottom=bottom, label=name, color=_COLOURS[name])
        bottom += part * factor
    axes.set_xlabel("step")
    axes.set_ylabel(f"time ({unit})")
    axes.set_xticks(range(0, len(bottom), max(1, len(bottom) // 20)))
    axes.legend()
    angle = np.pi / 2 - 2 * np.pi * np.arange(instance.gpus) / instance.gpus
    x, y = np.cos(angle), np.sin(angle)
    ends = [*starts[1:], len(instance.steps)]
    for column, (first, end) in enumerate(zip(drawn, ends, strict=False)):
        circle = figure.add_subplot(grid[1, column])
        links = plan.topologies[plan.topology_of_step[first]]
        for u, v, count in links.tolist():
            circle.annotate(
                "", (x[v], y[v]), (x[u], y[u]),
                arrowprops={"arrowstyle": "-|>", "lw": 0.6 * count, "color": "#555555", "mutation_scale": 6,
                            "connectionstyle": "arc3,rad=0.08", "shrinkA": 2, "shrinkB": 2},
            )  # fmt: skip
        circle.plot(x, y, "o", color=_COLOURS["alpha"], markersize=4 if instance.gpus <= 32 else 1.5)
        if instance.gpus <= 16:
            for u in range(instance.gpus):
                circle.text(1.15 * x[u], 1.15 * y[u], str(u), ha="center", va="center", fontsize=8)
        steps = f"step {first}" if end - first == 1 else f"steps {first}–{end - 1}"
        circle.set_title(f"{steps}\n{shape_of(links, instance.gpus)}", fontsize=8)
        circle.set_aspect("equal")
        circle.set_xlim(-1.3, 1.3)
        circle.set_ylim(-1.3, 1.3)
        circle.axis("off")
    if len(starts) > MAX_DRAWN:
        figure.text(0.99, 0.01, f"{len(starts) - MAX_DRAWN} more topologies not drawn", ha="right", fontsize=8)
    return figure
