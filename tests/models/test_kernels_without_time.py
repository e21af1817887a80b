"""Kernels that may run for seconds end by the clock: what is left of a search whose limit is over when it begins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth.clock.deadline import OutOfTime, stopping
from synth_models.bine.parts.units import units_of
from synth_models.bine.parts.weights import dimension_weights
from synth_models.bine.references.placement_greedy import best_placement, cut
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers


def within_a_limit(seconds: float, work: Callable[[], Any]) -> Any:
    """What the work returns, or the exception that ends it, under a limit with so many seconds left: in a thread, where
    no signal interrupts it."""
    found: list[Any] = []

    def run() -> None:
        try:
            with stopping(lambda: seconds):
                found.append(work())
        except OutOfTime as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.long
@settings(max_examples=some(20))
@given(data=st.data(), nodes=st.integers(3, 6), how=st.sampled_from([{}, {"in_order": True}, {"in_gaps": True}]))
def test_transfers_are_timed_within_the_limit_or_not_at_all(
    data: st.DataObject, nodes: int, how: dict[str, bool]
) -> None:
    """Random broadcasts over trees: with seconds left the same schedule as without a limit, without any no part of
    one."""
    instance = synth.make("fabric", network="full", nodes=nodes, collective="broadcast", bytes=1 << 20)
    net = instance.machine.network
    link = {(u, v): e for e, (u, v) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))}
    parent = [data.draw(st.integers(0, v - 1)) for v in range(1, nodes)]
    routes = [[link[u, v]] for v, u in enumerate(parent, 1)]
    before = [[u - 1] if u else [] for u in parent]
    transfers = Transfers.of([0], [1 << 20], np.zeros(nodes - 1, dtype=np.int64), routes, before)
    free = timed(instance, transfers, **how)
    limited = within_a_limit(3600.0, lambda: timed(instance, transfers, **how))
    assert np.array_equal(free.start, limited.start)
    assert isinstance(within_a_limit(-1.0, lambda: timed(instance, transfers, **how)), OutOfTime)


@pytest.mark.parametrize("groups", ["5,13,1,13", "7,1,1,9,5,9", "13,3,2,3,6,5", "5,3,13,11"])
def test_a_placement_is_searched_within_the_limit_only(groups: str) -> None:
    """Aligned subcubes stand where no second is left, and never a worse placement where some are."""
    instance = synth.make("bine", groups=groups, collective="allgather", problem="butterfly")
    units, weights = units_of(instance, 0), np.array(dimension_weights(instance, 32))

    def search() -> Any:
        return best_placement(units, weights, 0, 1, 1)

    free, limited = search(), within_a_limit(3600.0, search)
    assert np.array_equal(free, limited)
    stopped = within_a_limit(0.0, search)
    assert sorted(stopped.tolist()) == sorted(free.tolist())
    assert cut(units, free, weights) < cut(units, stopped, weights)
    assert cut(units, stopped, weights) <= cut(units, units.of_rank, weights)
