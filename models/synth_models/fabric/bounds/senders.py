"""An allreduce to which some ranks contribute late: what leaves ranks that are ready.

Of every byte at least 2 (N - 1) transfers go from member to member whose sender has its own part by then
(:mod:`synth_models.fabric.check.arguments` proves it). With a price of 1 on every link out of a rank each pays 1, and
a link out of rank u is paid from the moment on at which u is ready: with N links of b bytes/s and one rank that is late
by L, ``T >= (2 (N - 1) M / b + L) / N``.
"""

from __future__ import annotations

import numpy as np

from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.gossip import only_members, pays_its_way, windows
from synth_models.fabric.bounds.link_prices import resources_of, time_to_pay
from synth_models.fabric.bounds.proven import Proven

MOST_MEMBERS = 1024


def strongest_senders(links: Links, look: Colours, best: Proven) -> Proven:
    """What it proves where some rank is late, or ``best``."""
    instance, count = links.instance, len(links.members)
    few = 1 < count <= MOST_MEMBERS
    if not instance.ready or not few or not pays_its_way(links) or not only_members(links):
        return best
    length = (~links.is_switch[links.src]).astype(np.int64)
    _, left = windows(links)
    resources = resources_of(links, look, links.begins[links.src], left)
    if not np.any((resources.row >= 0) & (length > 0)):
        return best
    seconds = time_to_pay([resources], [length], 2 * (count - 1) * instance.bytes)
    if seconds <= best.seconds:
        return best
    return Proven(
        seconds,
        "senders",
        lambda: f"of every byte {2 * (count - 1)} transfers leave ranks that are ready, over every algorithm",
        lambda: {"argument": "senders", "length": length.tolist()},
    )
