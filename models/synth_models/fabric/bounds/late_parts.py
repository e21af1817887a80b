"""An allreduce to which several ranks contribute late, where every node is a member: what late ones contribute.

Of N members let k be ready at a moment t or later. Behind t what these contribute to a byte makes at least N + k - 2
transfers (:mod:`synth_models.fabric.check.arguments` proves it), each over a link of its own: with links of b bytes/s
together ``T >= t + (N + k - 2) M / b``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.gossip import counts_each, windows
from synth_models.fabric.bounds.link_prices import resources_of, time_to_pay
from synth_models.fabric.bounds.paths import earliest
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.ready import moments

MOST_MOMENTS = 8  # the latest


def strongest_late_parts(links: Links, look: Colours, best: Proven) -> Proven:
    """What the strongest of the latest moments proves, or ``best``."""
    late, count = moments(links.instance.ready), len(links.members)
    if not late or count != links.nodes:
        return best
    _, left = windows(links)
    length = np.ones(links.links, dtype=np.int64)
    for moment in sorted(set(late.values()), reverse=True)[:MOST_MOMENTS]:
        chosen = sorted(rank for rank, when in late.items() if when >= moment)
        begin = earliest(links, chosen)[links.src]
        resources = resources_of(links, look, begin, left, each=counts_each(links))
        seconds = time_to_pay([resources], [length], (count + len(chosen) - 2) * links.instance.bytes)
        if seconds > best.seconds:
            best = _proven(seconds, count, chosen)
    return best


def _proven(seconds: Fraction, count: int, chosen: list[int]) -> Proven:
    words = f"what {len(chosen)} late ranks contribute makes {count + len(chosen) - 2} transfers of every byte"
    certificate = {"argument": "partition", "part": list(range(count)), "late": chosen}
    return Proven(seconds, "partition", lambda: words, lambda: certificate)
