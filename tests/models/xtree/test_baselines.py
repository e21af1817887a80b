"""The baselines: verified schedules on every kind of network they take, hand-computed lengths, reproducible runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from examples import some_of
from models.xtree.cases import instance_of

from synth.arrays import Int32Array
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.network import Network, builders
from synth.options import RunOptions
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references import mesh2d_rings, multitree, tacos, tidalmesh, tto
from synth_models.xtree.references.grid_links import COLUMN, ROW, dimension_ordered, links_into, turned_round
from synth_models.xtree.references.list_scheduler import list_schedule

Solve = Callable[[XTreeInstance, RunOptions], Outcome]

BASELINES: dict[str, Solve] = {
    "multitree": multitree.solve,
    "tacos": tacos.solve,
    "mesh2d_rings": mesh2d_rings.solve,
    "tto": tto.solve,
    "tidalmesh": tidalmesh.solve,
}
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce")

# strongly connected (0 1 2 3 4 0 is a cycle), with a chord each way, a parallel link and a node of in-degree 1
IRREGULAR = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 4), (2, 0), (2, 0), (4, 2)]


def grid_of(kind: str, rows: int, cols: int) -> dict[str, object]:
    return {"kind": kind, "rows": rows, "cols": cols}


MESHES = {
    f"mesh{rows}x{cols}": grid_of("mesh", rows, cols) for rows, cols in ((2, 2), (2, 3), (3, 3), (4, 4), (3, 5), (5, 2))
}
EQUIMESH: dict[str, object] = {
    **grid_of("equimesh", 3, 4),
    "rings": {"top": "odd_up", "bottom": "even_up", "left": "even_up", "right": "odd_up"},
}
NETWORKS: dict[str, dict[str, object]] = {
    **MESHES,
    "mesh1x4": grid_of("mesh", 1, 4),
    "equimesh3x4": EQUIMESH,
    "torus4x4": grid_of("torus", 4, 4),
    "torus2x5": grid_of("torus", 2, 5),
    "ring5": {"kind": "ring", "nodes": 5},
    "oneway4": {"kind": "ring", "nodes": 4, "bidirectional": False},
    "irregular": {"kind": "links", "nodes": 5, "links": [{"src": u, "dst": v} for u, v in IRREGULAR]},
}
MESH_ONLY = {*MESHES, "equimesh3x4"}
TAKES = {
    "multitree": set(NETWORKS),
    "tacos": set(NETWORKS),
    "mesh2d_rings": {*MESH_ONLY, "mesh1x4", "torus4x4", "torus2x5"},
    "tidalmesh": {*MESH_ONLY, "mesh1x4"},
    "tto": MESH_ONLY,
}


def steps_of(method: str, network: dict[str, object], chunks: int, collective: str = "allgather") -> int:
    """Length of the method's schedule, which must pass the check."""
    instance = instance_of(network, chunks, collective)
    outcome = BASELINES[method](instance, RunOptions(seed=0))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.faults == []
    assert verdict.value == outcome.solution.steps
    return int(outcome.solution.steps)


@pytest.mark.parametrize(
    ("method", "network"), some_of((m, n) for m, n in product(BASELINES, NETWORKS) if n in TAKES[m])
)
def test_every_baseline_is_correct_and_no_better_than_the_bound(method: str, network: str) -> None:
    for chunks, collective in product((1, 3), COLLECTIVES):
        instance = instance_of(NETWORKS[network], chunks, collective)
        outcome = BASELINES[method](instance, RunOptions(seed=0))
        assert outcome.termination == "finished"
        assert outcome.bound is None
        verdict = check_schedule(instance, outcome.solution)
        assert verdict.faults == [], (chunks, collective)
        assert verdict.value is not None
        assert verdict.value >= lower_bound(instance)[0]
        # nothing is sent twice: N-1 transfers per chunk and phase
        phases = 2 if collective == "allreduce" else 1
        assert verdict.facts["redundant_transfers"] == 0
        assert len(outcome.solution) == phases * instance.total_chunks * (instance.topology.nodes - 1)


@pytest.mark.parametrize(("method", "network"), [(m, n) for m, n in product(BASELINES, NETWORKS) if n not in TAKES[m]])
def test_unsupported_networks_are_refused_with_a_reason(method: str, network: str) -> None:
    for collective in COLLECTIVES:
        with pytest.raises(UnsupportedError, match=method):
            BASELINES[method](instance_of(NETWORKS[network], 2, collective), RunOptions())


@pytest.mark.parametrize("method", ["mesh2d_rings", "tto", "tidalmesh"])
def test_message_names_the_bound_of_any_algorithm(method: str) -> None:
    """3x3 mesh, C = 2: a corner gets 8*2 chunks over two links, 8 timesteps."""
    outcome = BASELINES[method](instance_of(grid_of("mesh", 3, 3), 2), RunOptions())
    assert outcome.message is not None
    assert "bandwidth bound of any algorithm on this network: 8 timesteps" in outcome.message
    assert ("reconstruction" in outcome.message) == (method != "mesh2d_rings")


@pytest.mark.parametrize("method", BASELINES)
def test_same_seed_same_schedule(method: str) -> None:
    instance = instance_of(grid_of("mesh", 3, 4), 2, "allreduce")
    first, again, other = (BASELINES[method](instance, RunOptions(seed=seed)).solution for seed in (7, 7, 8))

    def equal(a: object, b: object) -> bool:
        return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("step", "link", "chunk", "adds"))

    assert equal(first, again)
    assert equal(first, other) == (method != "tacos")  # the others are deterministic


class TestMultitree:
    @pytest.mark.parametrize(
        ("network", "steps"),
        [
            # 2x2: step 1 gives every node both neighbours' data (8 links, 8 transfers), step 2 the opposite corner's
            (grid_of("mesh", 2, 2), 2),
            # both ways round a ring of 5, two nodes each way: 2; a one-way ring of 4: three hops
            ({"kind": "ring", "nodes": 5}, 2),
            ({"kind": "ring", "nodes": 4, "bidirectional": False}, 3),
            # a line: the last link brings 3 nodes' data, and step t brings the t-th nearest
            ({"kind": "line", "nodes": 4}, 3),
        ],
    )
    def test_hand_computed(self, network: dict[str, object], steps: int) -> None:
        assert steps_of("multitree", network, 1) == steps

    @pytest.mark.parametrize("network", ["mesh3x3", "equimesh3x4", "irregular"])
    def test_length_is_proportional_to_chunks(self, network: str) -> None:
        """All chunks of a node follow its tree and each step of the construction lasts C timesteps: T(C) = C * T(1)."""
        for collective in COLLECTIVES:
            one = steps_of("multitree", NETWORKS[network], 1, collective)
            assert [steps_of("multitree", NETWORKS[network], c, collective) for c in (2, 3, 5)] == [
                2 * one,
                3 * one,
                5 * one,
            ]

    def test_allreduce_is_both_halves(self) -> None:
        gather, scatter, both = (steps_of("multitree", EQUIMESH, 2, collective) for collective in COLLECTIVES)
        assert both == scatter + gather


class TestTacos:
    def test_no_choice_left(self) -> None:
        """One-way ring of 4, C = 1: all a link can carry is what its tail got the step before: 3 hops, 3 timesteps."""
        assert steps_of("tacos", NETWORKS["oneway4"], 1) == 3
        assert steps_of("tacos", NETWORKS["oneway4"], 1, "allreduce") == 6

    def test_matching_is_maximal(self) -> None:
        """No link idles while its tail held, before the timestep, a chunk that its head lacks after the timestep."""
        network = builders.grid((3, 3), False)
        schedule = tacos.allgather(network, 2, np.random.SeedSequence(3))
        held = np.repeat(np.eye(9, dtype=bool), 2, axis=1)
        for step in range(1, schedule.steps + 1):
            now = schedule.step == step
            after = held.copy()
            after[network.dst[schedule.link[now]], schedule.chunk[now]] = True
            idle = np.setdiff1d(np.arange(network.links), schedule.link[now])
            assert not np.any(held[network.src[idle]] & ~after[network.dst[idle]])
            held = after
        assert held.all()


class TestMesh2dRings:
    @pytest.mark.long(after=1)
    @pytest.mark.parametrize(
        ("network", "chunks", "steps"),
        [
            # one row of n: an end node gets (n-1)*C chunks over one link
            (grid_of("mesh", 1, 4), 1, 3),
            (grid_of("mesh", 1, 4), 3, 9),
            (grid_of("mesh", 5, 1), 2, 8),
            # 3x3, C = 2, one chunk per node and half: 2*1 in the first dimension, 2*3*1 in the second
            (grid_of("mesh", 3, 3), 2, 8),
            # 8x8, C = 4, two chunks per node and half: 7*2 + 7*8*2 = 126
            (grid_of("mesh", 8, 8), 4, 126),
            # 5x11, C = 4: rows of 11 take longer in both phases, 10*2 and then, with what columns gathered, 10*5*2
            (grid_of("mesh", 5, 11), 4, 120),
            # torus 4x4, C = 4, one chunk per node, half and direction: 3*1 + 3*4*1
            (grid_of("torus", 4, 4), 4, 15),
        ],
    )
    def test_hand_computed(self, network: dict[str, object], chunks: int, steps: int) -> None:
        assert steps_of("mesh2d_rings", network, chunks) == steps
        assert steps_of("mesh2d_rings", network, chunks, "reduce_scatter") == steps
        assert steps_of("mesh2d_rings", network, chunks, "allreduce") == 2 * steps

    def test_equimesh_is_used_as_its_mesh(self) -> None:
        instance = instance_of(EQUIMESH, 2)
        outcome = mesh2d_rings.solve(instance, RunOptions())
        assert outcome.solution.link.max() < 2 * (3 * 3 + 4 * 2)
        assert outcome.solution.steps == steps_of("mesh2d_rings", grid_of("mesh", 3, 4), 2)

    def test_barrier_between_the_phases(self) -> None:
        """3x3, C = 2: in timesteps 1-2 only chunks of a node's own row or column arrive, later only others."""
        instance = instance_of(grid_of("mesh", 3, 3), 2)
        schedule = mesh2d_rings.solve(instance, RunOptions()).solution
        place = np.stack(np.divmod(instance.topology.dst[schedule.link], 3))
        origin = np.stack(np.divmod(schedule.chunk // 2, 3))
        y_first = (origin.sum(axis=0) + schedule.chunk % 2) % 2  # 0: the row index stays in the first phase
        moved = np.where(y_first, place[1] != origin[1], place[0] != origin[0])
        assert np.array_equal(moved, schedule.step > 2)


class TestTto:
    @pytest.mark.parametrize(("rows", "cols"), [*product(range(2, 7), repeat=2), (5, 11), (9, 8)])
    def test_trees(self, rows: int, cols: int) -> None:
        """Three spanning trees rooted at corners which share one link in all, one into the idle corner, node 0."""
        network = builders.grid((rows, cols), False)
        trees = tto.corner_trees(network, links_into(network, ("mesh",), "tto"))
        assert trees.shape == (4, network.nodes)
        for tree in trees:
            reached = {int(v) for v in np.flatnonzero(tree < 0)}
            assert len(reached) == 1
            assert reached <= {cols - 1, (rows - 1) * cols, rows * cols - 1}
            for _ in range(rows + cols - 2):  # no deeper than the mesh's diameter
                reached |= {v for v in range(network.nodes) if tree[v] >= 0 and int(network.src[tree[v]]) in reached}
            assert len(reached) == network.nodes
            assert all(network.dst[tree[v]] == v for v in range(network.nodes) if tree[v] >= 0)
        assert len({int(np.flatnonzero(tree < 0)[0]) for tree in trees[:3]}) == 3
        links, count = np.unique(trees[:3][trees[:3] >= 0], return_counts=True)
        assert count.max() == 2
        assert network.dst[links[count == 2]].tolist() == [0]
        assert np.flatnonzero(trees[2] != trees[3]).tolist() == [0]

    def test_load_of_an_allreduce(self) -> None:
        """3x4, C = 1, K = 12 chunks, four per tree, two per variant of the third. Link neighbour -> idle corner: copies
        of one tree and one variant, 4 + 2, and sums of the tree that copies the other way, 4: 10. Elsewhere at most
        copies of one tree and sums of another: 8."""
        instance = instance_of(grid_of("mesh", 3, 4), 1, "allreduce")
        network = instance.topology
        schedule = tto.solve(instance, RunOptions()).solution
        load = np.bincount(schedule.link, minlength=network.links)
        at_corner = (network.src == 0) | (network.dst == 0)
        assert load[at_corner].tolist() == [10] * 4
        assert load[~at_corner].max() <= 8

    def test_single_row_has_no_corners(self) -> None:
        with pytest.raises(UnsupportedError, match="1x4"):
            tto.solve(instance_of(grid_of("mesh", 1, 4), 1), RunOptions())

    def test_arcs_are_refused_when_trees_cannot_be(self) -> None:
        """Two trees rooted at node 0 and 1 of a line 0-1-2 need two links into node 2; there is one."""
        network = builders.line(3)
        roots = np.array([0, 1], dtype=np.int32)
        assert tto.disjoint_arborescences(3, network.src, network.dst, roots) is None


class TestTidalmesh:
    def test_two_nodes(self) -> None:
        """1x2, C = 2: each link carries two sums for the other node and two copies of its own, no gaps: 4 steps."""
        assert steps_of("tidalmesh", grid_of("mesh", 1, 2), 2, "allreduce") == 4

    @pytest.mark.parametrize(("rows", "cols"), [(4, 4), (3, 5)])
    def test_ebb_and_flow_fill_links_evenly(self, rows: int, cols: int) -> None:
        """C = 2: links along rows of n = cols carry N + n transfers (one chunk per node and order: n with the rows
        first, N with the rows second), links along columns N + rows."""
        instance = instance_of(grid_of("mesh", rows, cols), 2, "allreduce")
        schedule = tidalmesh.solve(instance, RunOptions()).solution
        load = np.bincount(schedule.link, minlength=instance.topology.links)
        in_row = abs(instance.topology.dst - instance.topology.src) == 1
        assert set(load[in_row].tolist()) == {rows * cols + cols}
        assert set(load[~in_row].tolist()) == {rows * cols + rows}

    def test_halves_overlap(self) -> None:
        instance = instance_of(grid_of("mesh", 4, 4), 4, "allreduce")
        schedule = tidalmesh.solve(instance, RunOptions()).solution
        assert schedule.step[~schedule.adds].min() < schedule.step[schedule.adds].max()
        halves = [steps_of("tidalmesh", grid_of("mesh", 4, 4), 4, half) for half in ("reduce_scatter", "allgather")]
        assert schedule.steps < sum(halves)


class TestListScheduler:
    def line_trees(self) -> tuple[Network, Int32Array, Int32Array]:
        """Line 0-1-2 with root 1: links down and up."""
        network = builders.line(3)
        link = {(int(u), int(v)): e for e, (u, v) in enumerate(zip(network.src, network.dst, strict=True))}
        down = np.array([[link[1, 0], -1, link[1, 2]]], dtype=np.int32)
        up = np.array([[link[0, 1], -1, link[2, 1]]], dtype=np.int32)
        return network, down, up

    def test_sums_then_copies_pipelined(self) -> None:
        """K chunks: both ends send chunk k's sum in step k, the root its copies in step k + 1, on the other links."""
        network, down, up = self.line_trees()
        schedule = list_schedule(network, np.zeros(3, np.int32), down, up).sorted()
        assert schedule.steps == 4
        assert np.array_equal(schedule.step[schedule.adds], schedule.chunk[schedule.adds] + 1)
        assert np.array_equal(schedule.step[~schedule.adds], schedule.chunk[~schedule.adds] + 2)

    def test_group_goes_before_path_length(self) -> None:
        """Line of 3, one chunk from node 0 to 1 only, one to 1 and 2: the longer way goes first, unless told not to."""
        network = builders.line(3)
        into = {int(v): e for e, v in enumerate(network.dst) if network.src[e] < v}
        down = np.array([[-1, into[1], -1], [-1, into[1], into[2]]], dtype=np.int32)
        tree_of = np.array([0, 1], dtype=np.int32)
        assert list_schedule(network, tree_of, down).steps == 2
        assert list_schedule(network, tree_of, down, group=np.array([0, 1], dtype=np.int32)).steps == 3

    def test_bad_trees_are_refused(self) -> None:
        network, down, up = self.line_trees()
        one = np.zeros(1, np.int32)
        with pytest.raises(ValueError, match="does not end"):
            list_schedule(network, one, down=up)
        with pytest.raises(ValueError, match="copies, sums"):
            list_schedule(network, one)
        with pytest.raises(ValueError, match="copies leave"):
            list_schedule(network, one, down, np.where(up == up[0, 0], np.int32(-1), up))
        cycle = np.array([[down[0, 0], up[0, 0], down[0, 2]]], dtype=np.int32)  # 1 -> 0 and 0 -> 1
        with pytest.raises(ValueError, match="cycle"):
            list_schedule(network, one, down=cycle)

    @pytest.mark.parametrize("axis", [ROW, COLUMN])
    def test_dimension_ordered_trees(self, axis: int) -> None:
        """Every node is as deep as it is far from the owner, and its parent differs on the second axis if it can."""
        network = builders.equimesh(3, 4)
        into = links_into(network, ("equimesh",), "test")
        trees, later = dimension_ordered((3, 4), into, axis)
        place = np.stack(np.divmod(np.arange(12), 4))
        manhattan = np.abs(place[:, :, None] - place[:, None, :]).sum(axis=0)
        owner, node = np.nonzero(trees >= 0)
        assert np.array_equal(trees < 0, np.eye(12, dtype=bool))
        parent = network.src[trees[owner, node]]
        assert np.array_equal(manhattan[owner, parent] + 1, manhattan[owner, node])
        second = place[1 - axis]
        assert np.array_equal(later[owner, node], second[owner] != second[node])
        assert np.array_equal(later[owner, node], second[parent] != second[node])
        back = turned_round(network, into, trees)
        assert np.array_equal(network.dst[back[owner, node]], parent)
        assert np.array_equal(network.src[back[owner, node]], node)
        assert np.array_equal(back < 0, trees < 0)
