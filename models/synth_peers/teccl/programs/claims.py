"""What a plan claims, as it is stored beside a schedule and checked by :mod:`synth_peers.teccl.check.plan`."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth_peers.teccl.check.infeasibility_proof import SETS
from synth_peers.teccl.programs.counted_bound import Counted
from synth_peers.teccl.programs.fluid_insertion import Streams
from synth_peers.teccl.programs.grid import Grid
from synth_peers.teccl.programs.sends import Sends


def claims(grid: Grid, plan: Sends | Streams, epochs: int, least: Counted, proven: int) -> dict[str, Any]:
    """The plan as plain values and flat arrays. ``counted`` epochs are proven by the ``cut`` (empty: by distances) and
    what belongs to it (:class:`synth_peers.teccl.programs.counted_bound.Counted`); where a solver has proven
    more, ``refuted`` is what it says to be infeasible."""
    told = {"kind": "epochs", **_on(grid), "epochs": epochs, "counted": min(least.epochs, epochs), **_because(least)}
    if proven > least.epochs:
        told["refuted"] = proven - 1
    if isinstance(plan, Sends):
        return told | {"chunk": plan.chunk, "link": plan.link, "epoch": plan.epoch}
    return told | _by_origin(grid, plan)


def infeasible(grid: Grid, least: Counted, tau: str, horizon: int) -> dict[str, Any]:
    """Why no plan of so many epochs exists, as :mod:`synth_peers.teccl.check.infeasibility_proof` reads it: plain
    values and lists, of the proof only what it needs (distances: nothing). ``tau`` is the length of an epoch as the
    option says it."""
    needed: tuple[str, ...] = ("price", "away") if least.price else SETS if least.cut else ()
    if least.cut and grid.rule == "copied":
        needed = (*SETS, "last")
    because = {key: value for key, value in _because(least).items() if key in needed and np.size(value)}
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in because.items()}
    return {"tau": tau, **_on(grid), "horizon": horizon, **plain}


def _on(grid: Grid) -> dict[str, Any]:
    """The grid: its rule, seconds of an epoch as a fraction, chunks a block."""
    tau = {"tau_over": grid.tau.numerator, "tau_under": grid.tau.denominator}
    return {"rule": grid.rule, **tau, "chunks": grid.chunks}


def _because(least: Counted) -> dict[str, Any]:
    """What counting proves it by."""
    found: dict[str, Any] = {"last": least.last}
    for key in SETS:
        found[key] = np.array(getattr(least, key), dtype=np.int64)
    if least.price:
        found |= {"price": np.array(least.price, dtype=np.int64), "away": least.away}
    return found


def _by_origin(grid: Grid, streams: Streams) -> dict[str, Any]:
    """Streams added up by origin, link and epoch."""
    origin = np.repeat(grid.instance.blocks.origin[streams.block], np.diff(streams.start))
    amount = np.repeat(streams.amount, np.diff(streams.start))
    keys = np.stack([origin, streams.link, streams.epoch])
    (origin, link, epoch), place = np.unique(keys, axis=1, return_inverse=True)
    total = np.zeros(len(link), dtype=np.int64)
    np.add.at(total, place.reshape(-1), amount)
    return {"unit": streams.unit, "origin": origin, "link": link, "epoch": epoch, "amount": total}
