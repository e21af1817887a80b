"""Heatmaps against single solves, stored profiles, the bulk flow against hand arithmetic, drawing, and the page."""

from __future__ import annotations

import numpy as np
import pytest
from models.harvest.instances import made

import synth
from synth.family import get_family
from synth.reproduction.collect import Reproduction, plain_figures
from synth_models.harvest.parts.topologies import circulant, kautz, one_way_ring, shifted_ring
from synth_models.harvest.references.recursive_doubling import WHOLE, best_rings
from synth_papers.harvest import heatmaps
from synth_papers.harvest import workloads as published_workloads
from synth_papers.harvest.bulk_alltoall import bulk_load
from synth_papers.harvest.errata import errata
from synth_papers.harvest.heatmap_plot import draw

SIZES, DELAYS = heatmaps.ticks(2**10, 2**28, 4), heatmaps.ticks(1e-8, 1e-2, 5)


def make(algorithm, gpus=8, ports=1, size=2.0**20, delay=1e-5, **more):
    size_and_delay = {"message_bytes": size, "reconfiguration_delay": delay}
    return made(algorithm=algorithm, gpus=gpus, ports=ports, **size_and_delay, **more)


def rings(instance):
    return [one_way_ring(instance.gpus, instance.ports, shift) for shift in range(1, instance.gpus)]


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "alltoall_direct"])
def test_every_point_is_what_the_methods_find(algorithm):
    base = make(algorithm)
    rated = heatmaps.rates(base, rings(base))
    found = heatmaps.grid(rated, SIZES, DELAYS, [rated.index(shifted_ring(8, 1))])
    for row, size in enumerate(SIZES):
        for column, delay in enumerate(DELAYS):
            instance = make(algorithm, size=float(size), delay=float(delay))
            values = {name: synth.solve(instance, name).value for name in ("static_ring", "bvn", "candidates")}
            assert found.static[row] == pytest.approx(values["static_ring"], rel=1e-12)
            assert found.bvn[row, column] == pytest.approx(values["bvn"], rel=1e-12)
            assert found.best[row, column] == pytest.approx(values["candidates"], rel=1e-12)


def test_two_ports_and_hop_limits():
    """On a two-way ring a shift may go the short way or split both ways; the grid picks per point as the methods do."""
    base = make("swing", ports=2)
    rated = heatmaps.rates(base, [shifted_ring(8, 2)])
    found = heatmaps.grid(rated, SIZES, DELAYS, [rated.index(shifted_ring(8, 2))])
    for row, size in enumerate(SIZES):
        instance = make("swing", ports=2, size=float(size), delay=1.0)
        assert found.static[row] == pytest.approx(synth.solve(instance, "static_ring").value, rel=1e-9)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("torus", ["2x4", "2x2x2"])
def test_swing_on_a_torus_that_repeats_pairs(torus):
    """Volumes reach the grid as they reach the methods, on sides of 2 and unequal ones."""
    keys = {"torus": torus, "ports": 2 * torus.count("x") + 2}
    base = make("swing_torus", **keys)
    assert max(rows[:, 2].max() for rows in base.demands) > 1
    candidates = published_workloads.published_candidates(base)
    rated = heatmaps.rates(base, candidates)
    found = heatmaps.grid(rated, SIZES, DELAYS, published_workloads.static_indices(rated, ("torus",)))
    for row, column in ((0, 1), (3, 3)):
        instance = make("swing_torus", size=float(SIZES[row]), delay=float(DELAYS[column]), **keys)
        static, bvn, best = (synth.solve(instance, name).value for name in ("static_torus", "bvn", "candidates"))
        assert found.static[row] == pytest.approx(static, rel=1e-9)
        assert found.bvn[row, column] == pytest.approx(bvn, rel=1e-9)
        assert best <= found.best[row, column] * (1 + 1e-9)


def test_closed_form_over_the_published_grid():
    workload = published_workloads.FIGURE_5[0]
    found = published_workloads.heatmap(workload, published_workloads.rate(workload))
    for row in (0, 10, 20):
        for column in range(0, 25, 6):
            seconds, chosen = best_rings(
                6, WHOLE, found.sizes[row] / published_workloads.BANDWIDTH, 5e-7, 5e-7, found.delays[column]
            )
            assert found.best[row, column] == pytest.approx(seconds, rel=1e-12)
            assert found.changes[row, column] <= np.count_nonzero(np.diff(chosen))


def test_speed_ups_are_at_least_one_and_consistent():
    base = make("bruck_allgather", ports=2)
    rated = heatmaps.rates(base, published_workloads.published_candidates(base))
    found = heatmaps.grid(rated, SIZES, DELAYS, published_workloads.static_indices(rated, ("ring", "torus", "kautz")))
    assert np.all(found.over_both >= 1 - 1e-12)
    assert np.allclose(found.over_both, np.minimum(found.over_static, found.over_bvn))
    assert np.all(np.diff(found.best, axis=1) >= -1e-15)  # a longer delay is never faster
    assert np.all(np.diff(found.best, axis=0) > 0)  # nor is a larger message


def test_every_published_workload_has_what_it_names():
    names = [one.name for one in published_workloads.ALL]
    assert len(set(names)) == len(names) == 18
    for workload in published_workloads.ALL:
        instance = workload.instance()
        keys = {one.key() for one in published_workloads.published_candidates(instance, workload.candidates)}
        assert ("kautz" in workload.candidates) == (instance.ports > 1 and kautz(64, instance.ports).key() in keys)


def test_bulk_load_by_hand():
    """One-way ring of 8: every link carries the pairs at distance d for d links: 1 + … + 7 = 28. Two-way: 1 + 2 + 3 in
    each direction and 4 split between them: 8 per link. Complete graph: 1."""
    assert bulk_load(one_way_ring(8, 1).links, 8).unit_load == pytest.approx(28)
    assert bulk_load(shifted_ring(8, 2).links, 8) == pytest.approx((8, 8, 4))
    assert bulk_load(circulant(5, {1: 1, 2: 1, 3: 1, 4: 1}), 5) == pytest.approx((1, 1, 1))


def test_bulk_load_of_an_expander_is_above_its_hop_count():
    network = kautz(16, 2)
    found = bulk_load(network.links, 16)
    assert found.unit_load >= found.volume_load - 1e-9
    assert bulk_load(np.concatenate([network.links[:, :2], 2 * network.links[:, 2:]], axis=1), 16).unit_load == (
        pytest.approx(found.unit_load / 2)
    )


def test_bulk_load_needs_every_pair():
    with pytest.raises(ValueError, match="reached"):
        bulk_load(circulant(8, {2: 1}), 8)


def test_a_size_that_is_not_stated_is_an_error():
    base = make("recursive_doubling").model_copy(update={"algorithm": None})
    with pytest.raises(ValueError, match="message_bytes"):
        heatmaps.message_bytes(base)


def test_drawing_has_the_ticks_written_out(tmp_path):
    values = np.outer(SIZES / SIZES[0], np.ones(len(DELAYS))) ** 0.1
    figure = draw([[("one", values), ("two", values)]], SIZES, DELAYS, "title")
    figure.savefig(tmp_path / "a.png")
    words = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert words[0] == "1 KiB"
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_errata_are_computed(tmp_path):
    page = Reproduction(tmp_path)
    errata(page)
    bytes_twice, latency, allgather = (item.computation for item in page.errata)
    assert "by 4 (0.4375 to 1.75)" in bytes_twice
    assert "by 2 (1.5 to 3" in bytes_twice
    assert "0 reconfigurations and takes 69.06 us. The best one takes 19.03 us" in latency
    assert "only the shift 32 can run" in allgather


@pytest.mark.long
def test_the_quick_page(tmp_path):
    page = Reproduction(tmp_path / "harvest", quick=True)
    with plain_figures():
        get_family("harvest").capability("paper")(page)
    by_name = {(item.where, item.what): item for item in page.comparisons}
    large = [item for (where, _), item in by_name.items() if where.startswith("6.2, over static, 1 GB")]
    assert len(large) == 3
    assert all(abs(item.difference) < 0.02 for item in large)
    table_1 = [item for (where, _), item in by_name.items() if where.startswith("Table 1")]
    assert len(table_1) == 9
    assert {item.verdict for item in table_1} == {"agrees"}
    assert len(page.figures) == 1
    assert page.skipped
