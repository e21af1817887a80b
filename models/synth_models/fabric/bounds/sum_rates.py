"""What an allreduce costs where switches add more slowly than their links carry (``sum_rates``).

Follow one byte, and drop every transfer that reaches no final sum. Let p_v be the least price of a byte on a link into
member v, p the least of all p_v, and N the number of members. Something crosses a link into every member.

* Either **no switch adds**: then what crosses a link into a member comes from one rank, by a transfer that no other
  shares. These crossings are one-way messages between members, of which there are at least 2 (N - 1) (see
  :mod:`synth_models.fabric.bounds.gossip`): all links are paid ``sum of p_v + (N - 2) p`` at least.
* Or **a sum leaves a switch that adds** over a link e of b_e bytes/s, which it occupies for as long as a sum of
  ``add_rate`` r takes: it pays c_e b_e / min(b_e, r), not c_e. All links are paid ``sum of p_v`` and the least
  ``c_e (b_e / min(b_e, r) - 1)`` at least.

All M bytes pay the lesser of both, and until T links can be paid ``sum of c_e b_e max(0, T - h_e)``, h_e as in
``gossip``. On one switch with N ports of b bytes/s, prices 1: ``M (N - 1 + b / r) / (N b)``, if b / r <= N - 1.
Switches may copy; they must cut through, and no rank outside the group may forward: it would be a switch that adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.gossip import counts_each, only_members, windows
from synth_models.fabric.bounds.link_prices import resources_of, time_to_pay
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.exact import exact


def strongest_sum_rates(links: Links, look: Colours, best: Proven) -> Proven:
    """What an allreduce costs at equal prices a byte, and a second, of links into members, or ``best``."""
    if not applies(links):
        return best
    begin, left = windows(links)
    resources = resources_of(links, look, begin, left, each=counts_each(links))
    for length in _prices(links):
        worth = _worth(links, length) * links.instance.bytes
        scale = worth.denominator
        if not worth or not np.any((resources.row >= 0) & (length > 0)):
            continue
        seconds = time_to_pay([resources], [length * scale], int(worth * scale))
        if seconds > best.seconds:
            best = _proven(seconds, length)
    return best


def applies(links: Links) -> bool:
    """Whether some switch adds more slowly than a link out of it carries, and the argument holds."""
    instance, able = links.instance, links.instance.machine.abilities
    slow = np.isfinite(able.add_rate) & able.adds
    allreduce = instance.collective == "allreduce" and len(instance.members) > 1
    return allreduce and bool(slow.any()) and instance.switching.mode == "cut_through" and only_members(links)


def _prices(links: Links) -> Iterator[IntArray]:
    """Prices of 1 a byte, and as good as 1 a second, on links into members."""
    into = np.isin(links.dst, links.members)
    yield into.astype(np.int64)
    rates = links.rate[into]
    if len(rates) and int(rates.min()) < int(rates.max()) < 2**20:
        yield np.where(into, -(-int(rates.max()) // links.rate), 0).astype(np.int64)


def _worth(links: Links, length: IntArray) -> Fraction:
    """What a byte pays at least."""
    least = np.full(links.nodes, UNREACHABLE)
    np.minimum.at(least, links.dst, length)
    each = least[links.members].tolist()
    able = links.instance.machine.abilities
    slower = (len(each) - 2) * Fraction(min(each))
    for e in np.flatnonzero(able.adds[links.src] & links.is_switch[links.src]).tolist():
        rate, limit = links.rate[e].item() * links.unit, float(able.add_rate[links.src[e]])
        times = max(Fraction(1), rate / exact(limit)) if np.isfinite(limit) else Fraction(1)
        slower = min(slower, int(length[e]) * (times - 1))
    return Fraction(sum(each)) + slower


def _proven(seconds: Fraction, length: IntArray) -> Proven:
    paid = int((length > 0).sum())
    return Proven(
        seconds,
        "sum_rates",
        lambda: (
            f"sums in switches, over every algorithm: of every byte either a sum leaves a switch at its add_rate, or "
            f"ranks send 2 (N - 1) messages, over {paid} links into ranks"
        ),
        lambda: {"argument": "sum_rates", "length": length.tolist()},
    )
