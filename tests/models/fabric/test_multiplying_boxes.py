"""Flows over time where boxes multiply data and the rails between them do not: never above the least time of any
schedule of trees, certified, and refused as soon as a link at a multiplying switch counts."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.test_orbit_moments import COLLECTIVES, alone, cluster
from models.fabric.tree_brute_force import least

from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

NVLS = {"kind": "machine", "name": "dgx-h100-nvls", "boxes": 4}


def two_boxes(chooser: random.Random) -> FabricInstance:
    """Ranks 0 and 1, and 2 and 3 or 2 alone, behind a switch each, of which one or both multiply; rails between them
    are links or go over a plain switch."""
    ranks = chooser.choice([3, 4])
    near, far, fast = chooser.choice([0.5, 1.0]), chooser.choice([1.0, 2.0]), chooser.choice([1.0, 2.0, 4.0])
    links: list[tuple[int, int, float, float]] = [(v, ranks + v // 2, fast, near) for v in range(ranks)]
    nodes = ranks + 2
    over_switch = chooser.random() < 0.4
    for rail, v in enumerate(range(2, ranks)):
        if over_switch:
            links += [(rail, nodes, 1.0, far / 2), (v, nodes, 1.0, far / 2)]
            nodes += 1
        else:
            links.append((rail, v, 1.0, far))
    links += [(v, u, rate, latency) for u, v, rate, latency in links]
    able = [{"switch": ranks, "copies": True, "adds": True}, {"switch": ranks + 1}]
    able[1] |= chooser.choice([{"copies": True}, {"adds": True}, {"copies": True, "adds": True}, {}])
    rows = [dict(zip(("src", "dst", "bandwidth", "latency"), link, strict=True)) for link in links]
    network = {"kind": "links", "nodes": nodes, "switches": [*range(ranks, nodes)], "links": rows, "abilities": able}
    raw = {"name": "t", "source": "test", "network": network, "collective": chooser.choice(COLLECTIVES)}
    return FabricInstance.model_validate(raw | {"bytes": chooser.choice([1, 2, 4])})


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_no_schedule_of_trees_is_faster(seed: int) -> None:
    """Whole blocks, or two pieces, on 10 machines a seed; the bound begins below what is known, and meets the least
    time of some."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(10):
        instance = two_boxes(chooser)
        size = instance.bytes
        found = least(instance, [[size] if size < 2 or chooser.random() < 0.5 else [size // 2, size - size // 2]], 600)
        assert found.seconds is not None
        proven = alone(instance, float(found.seconds) * chooser.choice([0.3, 0.6, 0.9]))
        if proven is None:
            continue
        assert check_bound(instance, float_below(proven.seconds), proven.certificate()) == []
        assert check_bound(instance, float(proven.seconds) * (1 + 1e-4), proven.certificate()) != []
        assert proven.seconds <= found.seconds, (instance, float(proven.seconds), float(found.seconds))
        seen["tight" if proven.seconds > Fraction(97, 100) * found.seconds else "below"] += 1
    assert seen["tight"], seen


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_root_box_alone_sends_before_two_hops(collective: str) -> None:
    """64 KiB to 4 boxes: no two hops of 2.6 us end before 5.2 us. What 3 boxes get before comes out of the root's NICs,
    one of which may begin at once and seven after 0.7 us; it ends 3.3 us or, on the goal's own rail, 2.6 us later."""
    instance = cluster(4, collective, 2**16, network=NVLS)
    best = strongest(instance, RunOptions())
    assert best.argument == "orbit_moments"
    assert check_bound(instance, float_below(best.seconds), best.certificate()) == []
    out_of_the_box = 3 * 2**16 / 50e9  # seconds of one NIC
    assert 2.6e-6 + (out_of_the_box + 7 * 0.7e-6) / 8 < float(best.seconds) < 5.2e-6


def test_forged_certificates() -> None:
    """Shares at NVSwitches, and moments that leave more time between neighbours than their latency; what holds where
    rails only forward is refused where they copy too, and where boxes do not."""
    instance = cluster(4, "broadcast", 2**16, network=NVLS)
    found = alone(instance, 3.9e-6)
    assert found is not None
    bound, good = float_below(found.seconds), dict(found.certificate())
    assert check_bound(instance, bound, good) == []
    machine = instance.machine
    at_boxes = np.flatnonzero(machine.abilities.copies[machine.network.dst])
    share, since = np.array(good["share"]), np.array(good["since"])
    share[at_boxes] = 1
    later = since.copy()
    later[since > 0] += since.max()
    for forged, said in (
        ({"share": share.tolist()}, "bears a share"),
        ({"since": later.tolist()}, "may be a crossing"),
        ({"share": [0] * len(share)}, "pays nothing"),
    ):
        assert said in check_bound(instance, bound, good | forged)[0]
    everywhere: dict[str, Any] = {"switching": {"multicast": True}}
    for other in (cluster(4, "broadcast", 2**16, network=NVLS, **everywhere), cluster(4, "broadcast", 2**16)):
        assert check_bound(other, bound, good) != []
