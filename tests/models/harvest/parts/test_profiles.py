"""Profiles: closed forms against programs, symmetric against unreduced, and flows that reach what profiles state."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from synth_models.harvest.parts import topologies
from synth_models.harvest.parts.flows import layered as layered_flow
from synth_models.harvest.parts.flows import path as path_flow
from synth_models.harvest.parts.flows import profiles
from synth_models.harvest.parts.flows import split as split_flow
from synth_models.harvest.parts.flows.profiles import _distances, _Reduced, profile, routes
from synth_models.harvest.parts.topologies import circulant, count_links


def shift_pairs(gpus, shift):
    sources = np.arange(gpus)
    return np.stack([sources, (sources + shift) % gpus], axis=1)


def random_topology(random, gpus, ports):
    moves = [random.permutation(gpus) for _ in range(ports)]
    src = np.tile(np.arange(gpus), ports)
    return count_links(gpus, src, np.concatenate(moves))


def carries(flow, pairs, links, gpus):
    """Hops and largest load of a flow, every pair followed hop by hop."""
    for number, (src, dst) in enumerate(pairs.tolist()):
        at = np.zeros(gpus)
        at[src] = 1.0
        for hop in range(int(flow.hop.max()) + 1):
            rows = (flow.pair == number) & (flow.hop == hop)
            left = np.bincount(flow.src[rows], flow.share[rows], gpus)
            here = np.where(np.arange(gpus) == dst, 0.0, at)
            assert left == pytest.approx(here, abs=1e-9)
            at = at - left + np.bincount(flow.dst[rows], flow.share[rows], gpus)
        assert at[dst] == pytest.approx(1.0)
    load = np.zeros((gpus, gpus))
    np.add.at(load, (flow.src, flow.dst), flow.share)
    assert not load[links_matrix(links, gpus) == 0].any()
    return int(flow.hop.max()) + 1, float((load[links[:, 0], links[:, 1]] / links[:, 2]).max())


def links_matrix(links, gpus):
    matrix = np.zeros((gpus, gpus))
    matrix[links[:, 0], links[:, 1]] = links[:, 2]
    return matrix


def test_one_way_ring_by_hand():
    """Shift 3 on the shift-1 ring of 8: 3 hops, each link carries 3 pairs; with 2 parallel links 1.5 each."""
    found = profile(shift_pairs(8, 3), circulant(8, {1: 1}), 8)
    assert found.hops.tolist() == [3]
    assert found.unit_load.tolist() == [3.0]
    assert profile(shift_pairs(8, 3), circulant(8, {1: 2}), 8).unit_load.tolist() == [1.5]


def test_two_way_ring_by_hand():
    """Shift 3 on the two-way ring of 8: 3 hops with load 3, or shares 5/8 and 3/8 with load 15/8 in 5 hops."""
    found = profile(shift_pairs(8, 3), circulant(8, {1: 1, 7: 1}), 8)
    assert found.hops.tolist() == [3, 5]
    assert found.unit_load.tolist() == pytest.approx([3.0, 15 / 8])


def test_unreachable_pairs_have_no_points():
    for links in (circulant(8, {2: 1}), circulant(8, {2: 1, 6: 1}), circulant(8, {2: 1, 4: 1})):
        assert len(profile(shift_pairs(8, 3), links, 8).hops) == 0


@pytest.mark.long(after=5)
@pytest.mark.parametrize("gpus", [5, 6, 8, 9])
@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (1, 3)])
def test_two_way_closed_form_is_the_programs(gpus, counts):
    for ring in range(1, (gpus + 1) // 2):
        links = circulant(gpus, {ring: counts[0], gpus - ring: counts[1]})
        for shift in range(1, gpus):
            pairs = shift_pairs(gpus, shift)
            closed, program = profile(pairs, links, gpus), _Reduced(pairs, links, gpus).profile()
            assert closed.hops.tolist() == program.hops.tolist()
            assert closed.unit_load == pytest.approx(program.unit_load)
            for hops, load in zip(*closed, strict=True):
                reached, largest = carries(routes(pairs, links, gpus, int(hops)), pairs, links, gpus)
                assert (reached, largest) == (hops, pytest.approx(load))


@settings(max_examples=some(30), deadline=None)
@given(seed=st.integers(0, 10**6), gpus=st.integers(4, 7), ports=st.integers(1, 3))
def test_flows_reach_the_load_their_profile_states(seed, gpus, ports):
    random = np.random.default_rng(seed)
    links = random_topology(random, gpus, ports)
    pairs = np.array([(u, v) for u in range(gpus) for v in range(gpus) if u != v and random.random() < 0.3])
    assume(len(pairs))
    found = profile(pairs, links, gpus)
    assert np.all(np.diff(found.hops) > 0)
    assert np.all(np.diff(found.unit_load) < 0)
    for hops, load in zip(*found, strict=True):
        reached, largest = carries(routes(pairs, links, gpus, int(hops)), pairs, links, gpus)
        assert reached <= hops
        assert largest == pytest.approx(load, rel=1e-9)


@settings(max_examples=some(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_program_that_comes_again_has_its_own_values(seed):
    """Of programs that differ in one number, each has what it has where nothing is remembered."""
    random = np.random.default_rng(seed)
    pairs, links = shift_pairs(6, 2), random_topology(random, 6, 2)
    distance = _distances(links.tobytes(), 6)
    assume(distance[pairs[:, 0], pairs[:, 1]].max() < 6)
    listed = path_flow.list_routes(pairs, links, distance, 5)
    orbit, one = np.arange(len(links)), np.ones(6)
    asked = [(volume, links[:, 2] + more) for volume in (one, random.random(6) + 0.5) for more in (0, 1)]
    alone = []
    for volume, count in asked:
        path_flow._known.clear()
        alone.append(path_flow.solve(listed, volume, orbit, count))
    for (volume, count), shares in zip(asked * 2, alone * 2, strict=True):
        assert path_flow.solve(listed, volume, orbit, count).tolist() == shares.tolist()
        assert len(path_flow._known) <= len(asked)


def test_only_so_many_programs_are_remembered(monkeypatch):
    monkeypatch.setattr(path_flow, "REMEMBERED", 3)
    monkeypatch.setattr(path_flow, "_known", {})
    links = circulant(6, {1: 1, 3: 1})
    pairs = shift_pairs(6, 2)
    listed = path_flow.list_routes(pairs, links, _distances(links.tobytes(), 6), 5)
    for volume in range(1, 10):
        path_flow.solve(listed, np.linspace(1, volume, 6), np.arange(len(links)), links[:, 2])
    assert len(path_flow._known) == 3
    monkeypatch.setattr(path_flow, "MOST_REMEMBERED", 10)
    path_flow.solve(listed, np.linspace(1, 20, 6), np.arange(len(links)), links[:, 2])
    assert len(path_flow._known) == 3


@settings(max_examples=some(20), deadline=None)
@given(seed=st.integers(0, 10**6), gpus=st.integers(4, 7), ports=st.integers(2, 3))
def test_layered_program_and_listed_routes_agree(seed, gpus, ports):
    random = np.random.default_rng(seed)
    links = random_topology(random, gpus, ports)
    pairs = np.array([(u, v) for u in range(gpus) for v in range(gpus) if u != v and random.random() < 0.4])
    distance = _distances(links.tobytes(), gpus)
    assume(len(pairs))
    least = int(distance[pairs[:, 0], pairs[:, 1]].max())
    assume(least < gpus)
    orbit, count = np.arange(len(links)), links[:, 2]
    for hop_limit in range(least, gpus):
        listed = path_flow.list_routes(pairs, links, distance, hop_limit)
        shares = [(listed, path_flow.solve(listed, np.ones(len(pairs)), orbit, count))]
        shares.append(layered_flow.solve(pairs, links, distance, hop_limit, orbit, count))
        loads = []
        for found, share in shares:
            assert np.diff(found.start).max() <= hop_limit
            used = np.bincount(found.link, np.repeat(share, np.diff(found.start)), len(links))
            loads.append((used / count).max())
        assert loads[0] == pytest.approx(loads[1], rel=1e-6)


@pytest.mark.parametrize(("gpus", "sides"), [(8, None), (9, (3, 3)), (16, (4, 4))])
def test_symmetric_flows_lose_nothing(gpus, sides, monkeypatch):
    links = topologies.torus(sides, 4).links if sides else circulant(8, {1: 1, 3: 1})
    patterns = [shift_pairs(gpus, k) for k in (2, 3, gpus - 1)]
    reduced = [_Reduced(pairs, links, gpus) for pairs in patterns]
    assert any(len(one.group) > 1 for one in reduced)
    with_group = [one.solve(one.least_hops + 1, one.listed(one.least_hops + 1)) for one in reduced]
    loads = [one.load(flow) for one, flow in zip(reduced, with_group, strict=True)]
    monkeypatch.setattr(profiles.symmetry, "translations", lambda pairs, links, gpus: np.arange(gpus)[None, :])
    for pairs, load in zip(patterns, loads, strict=True):
        whole = _Reduced(pairs, links, gpus)
        limit = whole.least_hops + 1
        assert whole.load(whole.solve(limit, whole.listed(limit))) == pytest.approx(load, rel=1e-9)


def test_even_split_carries_everything_and_is_no_better_than_the_program():
    links, pairs = topologies.torus((4, 4), 4).links, shift_pairs(16, 10)
    distance = _distances(links.tobytes(), 16)
    flow = split_flow.split(pairs, links, distance)
    one = _Reduced(pairs, links, 16)
    rows = links[flow.link]
    found = profiles.FlowRows(flow.pair, flow.hop, rows[:, 0], rows[:, 1], flow.share)
    reached, load = carries(found, pairs, links, 16)
    assert reached == one.least_hops
    assert load >= profile(pairs, links, 16).unit_load[0] - 1e-9


def test_topologies_use_no_more_than_the_ports():
    for ports in (1, 2, 3, 4, 6):
        for topology in (
            topologies.one_way_ring(16, ports, 3),
            topologies.shifted_ring(16, ports, 8),
            topologies.kautz(16, ports),
            topologies.torus((4, 4), ports),
            topologies.torus((2, 2, 4), ports, 1),
            topologies.torus((4, 4), ports, 2),
        ):
            if topology is not None:
                matrix = links_matrix(topology.links, 16)
                assert matrix.sum(axis=0).max() <= ports
                assert matrix.sum(axis=1).max() <= ports
                assert not matrix.diagonal().any()


def test_completed_topologies_use_all_ports_and_keep_the_pairs():
    pairs = np.array([(0, 4), (2, 6)])
    links = topologies.completed(topologies.direct(pairs, 8, 2), [np.array([(0, 2), (1, 3)])], 8, 2)
    matrix = links_matrix(links, 8)
    assert matrix[0, 4] == matrix[2, 6] == 2
    assert matrix[1, 3] == 1
    assert matrix.sum() >= 15  # one GPU's last ports may only fit itself


def test_most_even_sides():
    assert topologies.torus_sides(64, 2) == (8, 8)
    assert sorted(topologies.torus_sides(24, 3)) == [2, 3, 4]
    assert topologies.torus_sides(13, 2) is None
