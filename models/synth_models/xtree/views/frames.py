"""A schedule as an animation: the network, and per timestep the chunks on its links."""

from __future__ import annotations

import numpy as np

from synth.schedule.quotient import QuotientSchedule
from synth.views.frames import Frames
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.solution import Solution
from synth_models.xtree.views.positions import positions


def frames(instance: XTreeInstance, schedule: Solution) -> Frames:
    """Items are chunks, ``node.number``, named for the node they start at; who holds them is shown for an allgather. Of
    a quotient the sample are node 0's chunks."""
    whole = 0
    if isinstance(schedule, QuotientSchedule):
        whole, schedule = schedule.transfers(instance.topology.nodes), schedule.part
    network, ordered = instance.topology, schedule.sorted()
    chunks = np.arange(instance.total_chunks, dtype=np.int64)
    origins = np.stack([chunks, chunks // instance.chunks], axis=1)
    return Frames(
        positions=positions(network),
        names=[network.name(v) for v in range(network.nodes)],
        step=ordered.step.astype(np.int64),
        src=network.src[ordered.link].astype(np.int64),
        dst=network.dst[ordered.link].astype(np.int64),
        item=ordered.chunk.astype(np.int64),
        items=[f"chunk {network.name(int(c) // instance.chunks)}.{c % instance.chunks}" for c in chunks],
        links=np.stack([network.src, network.dst], axis=1).astype(np.int64),
        held=origins[:0] if instance.task.reduces else origins,
        whole=whole,
    )
