"""The chart of a schedule shows every link's use, for any number of transfers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import synth
from synth_models.fabric.check.route_hops import hops_of


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("machine", "collective", "size", "method"),
    [
        ({"machine": "dgx-h100", "boxes": 2}, "alltoall", 2**26, "direct"),
        ({"machine": "dgx1"}, "alltoall", 2**26, "direct"),
        ({"machine": "dgx1"}, "allgather", 2**28, "ring"),
        ({"machine": "dgx1"}, "allreduce", 2**20, "ring"),
        ({"machine": "dgx-h100-nvls"}, "allreduce", 2**12, "in_network"),  # hubs
        ({"machine": "dgx-h100-nvls"}, "reduce", 2**12, "steiner"),  # in-trees
        ({"machine": "dgx-h100-nvls"}, "allreduce", 2**14, "nvls"),  # in-trees and out-trees
    ],
)
def test_what_is_drawn_of_a_schedule_is_its_occupancy(
    machine: dict[str, Any], collective: str, size: int, method: str
) -> None:
    """Link by link and moment by moment, against intervals added up here one by one."""
    instance = synth.make("fabric", collective=collective, bytes=size, **machine)
    record = synth.solve(instance, method)
    schedule: Any = record.solution()
    network = instance.machine.network  # type: ignore[attr-defined]
    hops = hops_of(instance, schedule)  # type: ignore[arg-type]
    end = int(hops.arrive.max())
    spans = [
        (int(link), int(begin), int(begin + hops.ticks[span]))
        for link, begin, span in zip(schedule.link, hops.begin, hops.span, strict=True)
    ]
    chart = record.plot().axes
    axes = next(one for one in chart if one.get_ylabel() == "link")
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    of_name: dict[str, list[int]] = {}
    machine_names = instance.machine.names  # type: ignore[attr-defined]
    for e in range(network.links):
        of_name.setdefault(f"{machine_names[network.src[e]]}→{machine_names[network.dst[e]]}", []).append(e)
    link_of = [of_name[name].pop(0) if len(of_name[name]) > 1 else of_name[name][0] for name in names]
    assert "not drawn" not in axes.get_title()
    if axes.images:
        drawn = np.ma.filled(axes.images[0].get_array(), 0.0)
        bins = drawn.shape[1]
        expected = np.zeros((len(link_of), bins))
        for row, link in enumerate(link_of):
            for one, a, b in spans:
                for k in range(a * bins // end, min(bins - 1, b * bins // end) + 1) if one == link else ():
                    low, high = k * end / bins, (k + 1) * end / bins
                    expected[row, k] += max(0.0, min(b, high) - max(a, low)) / (high - low)
        assert np.allclose(drawn, expected, atol=1e-5)
        assert np.all(drawn[expected > 1e-9] > 0)
    else:
        [bars] = axes.collections
        assert len(bars.get_paths()) == sum(link in set(link_of) for link, *_ in spans)
        width = axes.get_xlim()[1]
        assert all(np.ptp(path.vertices[:, 0]) >= 0.99 * width / 300 for path in bars.get_paths())
