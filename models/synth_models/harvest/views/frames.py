"""A schedule as an animation: GPUs on a circle, and per step the bytes that cross each link of its topology."""

from __future__ import annotations

import numpy as np

from synth.text.quantities import SECONDS, shown
from synth.views.frames import Frames, circle
from synth_models.harvest.check.changes import changes_of
from synth_models.harvest.check.replay import step_times
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule
from synth_models.harvest.views.describe import shape_of


def frames(instance: HarvestInstance, schedule: Schedule) -> Frames:
    """One frame a step: an arrow per link in use, labelled with its bytes, and the topology and time in the title."""
    gpus, step = instance.gpus, np.repeat(np.arange(len(instance.steps)), np.diff(schedule.flow_start))
    keys, at = np.unique((step * gpus + schedule.src) * gpus + schedule.dst, return_inverse=True)
    when, ends = np.divmod(keys, gpus * gpus)
    offset = np.cumsum([0, *(len(rows) for rows in instance.demands[:-1])])
    volume = np.concatenate(instance.demands)[schedule.pair + offset[step], 2]
    sizes = np.bincount(at, schedule.share * volume * instance.bytes_per_pair[step], len(keys))
    texts = [f"{size:.10g} bytes" for size in sizes]
    items = list(dict.fromkeys(texts))
    number = {text: index for index, text in enumerate(items)}
    times, changed = step_times(instance, schedule), changes_of(instance, schedule).differ
    titles = []
    for i, chosen in enumerate(schedule.topology_of_step.tolist()):
        total = times.alpha[i] + times.delta[i] + times.bandwidth[i]
        before = f"reconfigured ({shown(times.reconfiguration[i], SECONDS)}) to " if changed[i] else ""
        titles.append(f"step {i}: {before}{shape_of(schedule.topologies[chosen], gpus)}; {shown(total, SECONDS)}")
    return Frames(
        positions=circle(gpus),
        names=[str(gpu) for gpu in range(gpus)],
        step=when + 1,
        src=ends // gpus,
        dst=ends % gpus,
        item=np.array([number[text] for text in texts], dtype=np.int64),
        items=items,
        titles=titles,
    )
