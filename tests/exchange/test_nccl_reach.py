"""What NCCL's ring should reach, beside what its users measured."""

from __future__ import annotations

import pytest

from synth.exchange.selection.nccl_reach import Ring, data, reach

MEASURED = [  # busbw in GB/s, by how much the model may be off
    ("NVIDIA/nccl 1453: two H100 over a NIC of 400 Gb/s", Ring("allreduce", 2, 2, 50e9), "hopper", 2**30, 47.97, 0.002),
    ("NVIDIA/nccl 1048: two A100 over a NIC of 200 Gb/s", Ring("allreduce", 2, 2, 25e9), "ampere", 2**32, 24.0, 0.002),
    ("NVIDIA/nccl 1048: eight A100 in a box", Ring("allreduce", 8, 1, 300e9), "ampere", 2**32, 232.54, 0.035),
]


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case[0])
def test_the_model_comes_close_to_what_was_measured(case: tuple[str, Ring, str, int, float, float]) -> None:
    _, ring, gpu, size, measured, off = case
    found = reach(ring, gpu, size)
    assert found is not None
    busbw = 2 * (ring.ranks - 1) / ring.ranks * size / found.seconds / 1e9
    assert busbw == pytest.approx(measured, rel=off)
    assert busbw * 1e9 < ring.rate
    assert found.protocol == "Simple"


@pytest.mark.parametrize("gpu", ["volta", "ampere", "hopper", "blackwell"])
def test_small_sizes_take_ll_and_none_beats_the_links(gpu: str) -> None:
    ring = Ring("allgather", 16, 2, 50e9)
    protocols = []
    for power in range(10, 36):
        found = reach(ring, gpu, 2**power)
        assert found is not None
        assert found.seconds > 15 / 16 * 2**power / ring.rate
        protocols.append(found.protocol)
    assert (protocols[0], protocols[-1]) == ("LL", "Simple")
    assert reach(Ring("alltoall", 16, 2, 50e9), gpu, 2**20) is None


def test_shares_are_shares() -> None:
    for table in data().values():
        for entry in table.values():
            assert all(0 < value <= 1 for key, value in entry.items() if key.endswith("share"))
