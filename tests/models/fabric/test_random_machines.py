"""Every method on instances drawn over all that a file may state: no failed check, no traceback, no bound too high."""

from __future__ import annotations

from typing import Any

from models.fabric.random_machines import random_instance

from synth_models.fabric.problem.blocks import COLLECTIVES


def test_the_instances_are_the_same_each_time_and_of_all_kinds() -> None:
    """Of two hundred numbers some state each of these."""
    drawn = [random_instance(seed) for seed in range(200)]
    random_instance.cache_clear()
    assert [random_instance(seed).to_json() for seed in range(20)] == [one.to_json() for one in drawn[:20]]
    files: list[dict[str, Any]] = [one.model_dump() for one in drawn]
    assert {one["collective"] for one in files} == {*COLLECTIVES, "several"}
    assert {len(one.members) for one in drawn} == set(range(1, 9))
    switching = [one.switching for one in drawn if one.machine.is_switch.any()]
    for mode, flag in (("cut_through", "multicast"), ("store_and_forward", "buffer"), ("store_and_forward", "copies")):
        assert {bool(getattr(own, flag)) for own in switching if own.mode == mode} == {False, True}
    assert {own.mode for own in switching if own.adds} == {"cut_through", "store_and_forward"}
    for key in ("links", "nodes", "reduced"):
        assert any(one["failed"][key] for one in files)
    assert any(len(one.boxes) < len(one.members) for one in drawn)
    assert any((one.machine.group >= 0).any() for one in drawn)
    assert any(one.relay and one.ranks for one in drawn)
