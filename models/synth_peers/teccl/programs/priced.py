"""The fewest epochs that prices on links, and the strongest cut, prove: bounds in seconds asked of the epoch grid.

The bounds of :mod:`synth_models.fabric.bounds` look at a machine whose links have a rate and a latency. The grid is
one: with an epoch as the second, a link carries its capacity a second and delivers after its lag. What is sent in
epoch k takes place between k and k + 1, so a lag is one more than what a plan of K epochs loses, and what is proven is
K + 1. Bounds with latencies in seconds do not carry over: epochs leave out latencies below a tenth of an epoch.

**Prices** (shares that are not copied). With whole prices p_e of a chunk on link e, all blocks pay at least their
shares times the shortest distances; until epoch K link e is paid at most
``p_e * capacity_e * max(0, K - head_e - lag_e + 1 - left_e)``, with the epochs to and from it as in
:mod:`synth_peers.teccl.programs.counted_bound`; of a group the dearest of these alone. Exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from synth.arrays import BoolArray
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import colours, finer
from synth_models.fabric.bounds.concurrent_flow import strongest_prices
from synth_models.fabric.bounds.cuts import strongest_cut
from synth_models.fabric.bounds.proven import NOTHING
from synth_peers.teccl.programs.counted_bound import Counted
from synth_peers.teccl.programs.grid import Grid

FAR_TICKS = 2**40


def priced(grid: Grid, known: Counted, more: Callable[[], bool]) -> Counted:
    """``known``, or the bound by prices that is found while ``more()`` if it is stronger."""
    if grid.rule == "copied" or int(grid.lag.max(initial=0)) >= FAR_TICKS:
        return known
    links = _as_seconds(grid)
    found = strongest_prices(links, finer(links, colours(links)), more, NOTHING)
    epochs = -(-found.seconds // 1) - 1
    if epochs <= known.epochs:
        return known
    certificate = found.certificate()
    words = "concurrent flow: link prices at which all blocks' shortest ways cost what the links carry in that time"
    return Counted(int(epochs), words, price=tuple(certificate["length"]), away=int(certificate["away_ticks"]))


def likely_cut(grid: Grid, more: Callable[[], bool]) -> Iterator[BoolArray]:
    """The nodes of the cut that proves the most where nothing comes in whole chunks."""
    if int(grid.lag.max(initial=0)) >= FAR_TICKS:
        return
    links = _as_seconds(grid)
    certificate = strongest_cut(links, finer(links, colours(links)), more).certificate()
    if certificate["argument"] == "cut":
        yield np.isin(np.arange(links.nodes), certificate["inside"])


def _as_seconds(grid: Grid) -> Links:
    """The grid as links: bytes and latencies of an epoch of one second."""
    links = Links.of(grid.instance)
    return replace(links, unit=links.unit * grid.tau, delay=grid.lag, ticks=1)
