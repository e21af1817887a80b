"""A schedule in words: a line per step, and what topology it runs on."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.text.quantities import BYTES, SECONDS, shown
from synth_models.harvest.check.changes import Changes, changes_of
from synth_models.harvest.check.replay import step_times
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule

MAX_STEPS = 40


def shape_of(links: IntArray, gpus: int) -> str:
    """A topology in a few words: its shifts where all GPUs have the same, else its number of links."""
    shift = (links[:, 1] - links[:, 0]) % gpus
    kinds, at = np.unique(np.stack([shift, links[:, 2]], axis=1), axis=0, return_counts=True)
    if len(kinds) <= 6 and np.all(at == gpus):
        signed = [min(s, s - gpus, key=abs) for s, _ in kinds.tolist()]
        word = "shift " if len(kinds) == 1 else "shifts "
        return word + ", ".join(
            f"{s:+d}" + (f" ({count} links)" if count > 1 else "")
            for s, (_, count) in zip(signed, kinds.tolist(), strict=True)
        )
    return f"{int(links[:, 2].sum())} links between {len(links)} pairs of GPUs"


def _paid(instance: HarvestInstance, changes: Changes, step: int) -> str:
    """What the change before the step costs, and what of it the instance says more than one delay about."""
    words = f"{shown(changes.paid[step], SECONDS)} to reconfigure"
    if instance.delay_varies:
        words += f" ({changes.circuits[step]} circuits set up, {changes.ports[step]} ports changed)"
    hidden = changes.seconds[step] - changes.paid[step]
    return words + (f", {shown(hidden, SECONDS)} more hidden" if hidden > 0 else "")


def _sizes(instance: HarvestInstance, step: int) -> str:
    """The bytes of a step's pairs: of each, or from the least to the most."""
    sizes = instance.bytes_per_pair[step] * instance.demands[step][:, 2]
    least, most = shown(float(sizes.min()), BYTES), shown(float(sizes.max()), BYTES)
    return f"{most} each" if sizes.min() == sizes.max() else f"{least} to {most}"


def describe(instance: HarvestInstance, schedule: Schedule) -> str:
    """Per step: its time and what it is made of, longest route, theta, and the topology where it changes."""
    times = step_times(instance, schedule)
    changes, lines = changes_of(instance, schedule), []
    for i in range(min(len(instance.steps), MAX_STEPS)):
        if i == 0 or changes.differ[i]:
            before = f", {_paid(instance, changes, i)}" if changes.differ[i] else ""
            lines.append(
                f"topology: {shape_of(schedule.topologies[schedule.topology_of_step[i]], instance.gpus)}{before}"
            )
        total = times.alpha[i] + times.delta[i] + times.bandwidth[i]
        hops = "1 hop" if times.hops[i] == 1 else f"{times.hops[i]} hops"
        lines.append(
            f"  step {i}: {len(instance.pairs[i])} pairs, {_sizes(instance, i)}: "
            f"{shown(total, SECONDS)} = {shown(times.alpha[i], SECONDS)} alpha + {shown(times.delta[i], SECONDS)} "
            f"for {hops} + {shown(times.bandwidth[i], SECONDS)} for the bytes; theta {times.theta[i]:.4g}"
        )
    if len(instance.steps) > MAX_STEPS:
        lines.append(f"… {len(instance.steps) - MAX_STEPS} more steps (--csv prints all)")
    return "\n".join(lines)
