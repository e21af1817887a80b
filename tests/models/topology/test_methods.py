"""The methods by known values: tori, twisted tori, Kautz and de Bruijn graphs, circulants; ours beside them."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

import synth
from synth.errors import InputError
from synth.options import RunOptions
from synth.solvers.status import SolverResult
from synth.text.input_file import InputFile
from synth_models.topology.bounds.anywhere import least_length
from synth_models.topology.check.replay import check_topology
from synth_models.topology.instance import Budget, Cubes, TopologyInstance
from synth_models.topology.parts.arcs import arcs_of
from synth_models.topology.parts.folds import folded, tree_flows
from synth_models.topology.parts.lift_kernels import UNREACHED, length_sum
from synth_models.topology.parts.lifts import circuits_of, circuits_of_cubes, lift_of_cubes, random_lift
from synth_models.topology.parts.routing import routed
from synth_models.topology.programs import milp
from synth_models.topology.solution import Topology, flow_table, joined
from synth_models.topology.views.from_table import from_table

CUBES = {"cubes": 2, "sides": "4x4x4"}


@pytest.mark.parametrize(
    ("keys", "method", "value"),
    [
        (CUBES, "torus", 128.0),  # 16 hops round a ring of 8, times 128 nodes over 2 x 8 arcs of a line
        (CUBES, "twisted", 56320 / 768),  # all switches exchange the cubes
        ({"cubes": 4, "sides": "2x2"}, "torus", 8.0),  # 4 x 4: 4 hops round a ring of 4, 16 nodes over 8 arcs
        (
            {"nodes": 12, "degree": 2, "one_way": True, "objective": "hops"},
            "kautz",
            306,
        ),  # 300 by levels; 3 cycles of two
        ({"nodes": 8, "degree": 4, "objective": "hops"}, "complete_bipartite", 8 * (4 + 3 * 2)),
        ({"nodes": 16, "degree": 4, "objective": "hops"}, "cartesian_power", 16 * 32),  # a hypercube, half of 64 bits
        ({"nodes": 9, "degree": 4, "objective": "hops"}, "cartesian_power", 9 * (4 + 4 * 2)),  # triangles: Hamming
        ({"nodes": 6, "degree": 4, "objective": "hops"}, "degree_expansion", 6 * (4 + 2)),  # a triangle of twins
        (
            {"nodes": 20, "degree": 4, "one_way": True, "objective": "hops"},
            "line_graph",
            20 * (4 + 15 * 2),  # of K5, a Kautz graph
        ),
        (
            {"nodes": 64, "degree": 4, "one_way": True, "objective": "hops"},
            "line_graph",
            64 * 63 + 4 * 4 * 480 - 64,  # of C(16,{3,4}), of 480 hops: a to b by way of the head of a and the tail of b
        ),
        ({"nodes": 13, "degree": 4}, "circulant", 5.0),  # ± 2, 3: 4 nodes at one hop, 8 at two: 20 hops over 4 arcs
    ],
)
def test_values_known_in_closed_form(keys: dict[str, Any], method: str, value: float) -> None:
    record = synth.solve(synth.make("topology", **keys), method)
    assert record.ok
    assert record.value == pytest.approx(value, rel=1e-9)


def test_a_de_bruijn_graph_has_its_diameter() -> None:
    """Words of 3 bits: 3 hops; the loops at 000 and 111 are left out."""
    record = synth.solve(synth.make("topology", nodes=8, degree=2, one_way=True), "de_bruijn")
    facts = record.data["verified"]["facts"]
    assert (facts["diameter"], facts["arcs"]) == (3, 14)


def test_a_random_graph_has_its_degree_and_follows_the_seed() -> None:
    instance = synth.make("topology", nodes=20, degree=3, objective="hops")
    first, again, other = (synth.solve(instance, "random_regular", seed=seed) for seed in (1, 1, 2))
    assert first.value == again.value
    rows = first.solution().circuits
    assert np.bincount(rows[:, 1:].ravel()).tolist() == [3] * 20
    assert not np.array_equal(rows, other.solution().circuits)


@pytest.mark.parametrize(
    ("keys", "method"),
    [
        ({"nodes": 8, "degree": 3}, "torus"),
        ({"cubes": 1, "sides": "3x3"}, "twisted"),
        ({"nodes": 5, "degree": 3}, "circulant"),
        ({"nodes": 5, "degree": 3}, "random_regular"),
        ({"cubes": 2, "sides": "2x2"}, "kautz"),
        ({"nodes": 9, "degree": 4}, "complete_bipartite"),
        ({"nodes": 10, "degree": 2}, "line_graph"),
        ({"nodes": 7, "degree": 3}, "cartesian_power"),
        ({"nodes": 7, "degree": 3}, "degree_expansion"),
        ({"nodes": 8, "degree": 3}, "milp"),
    ],
)
def test_what_a_method_does_not_take_is_said(keys: dict[str, Any], method: str) -> None:
    record = synth.solve(synth.make("topology", **keys), method)
    assert record.data["termination"] == "unsupported"
    assert record.data["message"]


def test_a_search_is_better_than_the_twisted_torus_with_few_moves() -> None:
    instance = synth.make("topology", objective="hops", **CUBES)
    record = synth.solve(instance, "search", options={"moves": 300, "starts": 1})
    assert record.ok
    assert 53792 <= record.value < 56320


@pytest.mark.long
def test_ours_is_below_the_published_optimum_of_two_cubes() -> None:
    """TONS prints 71.4375 (its flow by Gurobi). The bound for every topology is 53,792 hops over 768 arcs."""
    instance = synth.make("topology", **CUBES)
    record = synth.solve(instance, "search", time_limit="none", options={"moves": 6000, "starts": 2})
    assert record.ok
    assert 53792 / 768 <= record.value < 71.4375


@pytest.mark.parametrize(
    ("ended", "bound", "worse", "said", "grade"),
    [
        ("limit", -1 / 4.0, 0, "time_limit", "certified"),  # the solver proves 4, the cut 13/3
        ("limit", None, 0, "time_limit", "certified"),
        ("optimal", -3 / 13, 0, "optimal", "certified"),
        ("optimal", -1 / 4.4, 0, "optimal", "solver"),
        ("optimal", -3 / 13, 1, "time_limit", "certified"),  # its circuits are routed worse than the solver says
    ],
)
def test_what_the_program_says_of_its_end(
    monkeypatch: pytest.MonkeyPatch, ended: Any, bound: float | None, worse: int, said: str, grade: str
) -> None:
    """The larger of the solver's bound and the certified one; 'optimal' only if the routing is as good as that."""

    def solved(model: Any, *_: object, **__: object) -> SolverResult:
        for (_, i, j), x in model.chosen.items():
            x.set_value(int(i == j))
        return SolverResult(ended, True, None, bound, 0.0)

    def as_routed(*_: object) -> tuple[Fraction, Topology]:
        return Fraction(13, 3) + worse, Topology(np.zeros((0, 3), dtype=np.int64))

    monkeypatch.setattr(milp.mathprog, "solve", solved)
    monkeypatch.setattr(milp, "routed", as_routed)
    instance = synth.make("topology", cubes=2, sides="2x2x2")
    assert isinstance(instance, TopologyInstance)
    outcome = milp.solve(instance, RunOptions(None))
    assert outcome.termination == said
    assert (outcome.certificate is not None) == (grade == "certified")
    assert outcome.bound == pytest.approx(13 / 3 if grade == "certified" else 4.4)


@pytest.mark.parametrize("method", ["twisted", "milp"])
def test_a_topology_comes_back_out_of_its_tables(method: str, tmp_path: Any) -> None:
    """With the table of flows the very routing; without it trees route the circuits, nearly as well."""
    instance = synth.make("topology", cubes=2, sides="2x2x2")
    assert isinstance(instance, TopologyInstance)
    record = synth.solve(instance, method)
    circuits, flows = tmp_path / "circuits.csv", tmp_path / "flows.csv"
    circuits.write_text(record.table().to_csv(index=False))
    flows.write_text(flow_table(instance, record.solution()).to_csv(index=False))
    again = check_topology(instance, from_table(instance, InputFile(circuits), InputFile(flows)))
    assert (again.ok, again.value) == (True, record.value)
    alone = check_topology(instance, from_table(instance, InputFile(circuits)))
    assert alone.value == pytest.approx(13 / 3, rel=0.02)


def test_a_collective_on_a_topology_that_was_found(tmp_path: Any) -> None:
    """``synth make fabric topology=RECORD``: its links with their rates and latencies; a false record is refused."""
    (tmp_path / "squares.json").write_text(synth.make("topology", cubes=2, sides="2x2", objective="hops").to_json())
    record = synth.solve(synth.read(tmp_path / "squares.json"), "twisted", results=tmp_path)
    made = synth.make("fabric", topology=record.path, collective="alltoall", bytes="1MiB")
    network = made.machine.network
    assert (network.nodes, network.links) == (8, 32)
    assert sorted(set(network.latency.tolist())) == [50e-9, 75e-9]
    assert synth.solve(made, "direct").ok
    file = record.path
    data = json.loads(file.read_text())
    data["solution"]["circuits"][1] = data["solution"]["circuits"][0]
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="is used twice"):
        synth.make("fabric", topology=file, collective="alltoall", bytes="1MiB")
    with pytest.raises(InputError, match="has no meaning with topology"):
        synth.make("fabric", topology=file, nodes=4, collective="alltoall", bytes="1MiB")


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("copies", [1, 2, 5])
def test_the_sum_of_lengths_of_a_lift(copies: int, length: int) -> None:
    """As Dijkstra's way finds it in the graph that the circuits make; no topology has less than the bound."""
    instance = synth.make("topology", cubes=copies, sides="4x2")
    assert isinstance(instance, TopologyInstance)
    assert isinstance(instance.plant, Cubes)
    lift, random = lift_of_cubes(instance.plant, length), np.random.default_rng(3)
    assert length_sum(lift.to, lift.shift, lift.ports[3], copies, 1 << 40) == UNREACHED or copies == 1
    for port in lift.movable.tolist():
        lift.turn(port, int(random.integers(copies)))
    graph = nx.Graph()
    graph.add_edges_from(map(tuple, instance.fixed.tolist()), length=1)
    for u, v in joined(instance, circuits_of_cubes(instance.plant, lift.shift.flat[lift.movable].tolist())).tolist():
        if not graph.has_edge(u, v):
            graph.add_edge(u, v, length=length)
    away = sum(sum(far.values()) for _, far in nx.all_pairs_dijkstra_path_length(graph, weight="length"))
    found = length_sum(lift.to, lift.shift, lift.ports[3], copies, 1 << 40)
    assert found * copies == away >= least_length(instance, (1, length))
    assert length_sum(lift.to, lift.shift, lift.ports[3], copies, found - 1) == UNREACHED


@pytest.mark.parametrize(
    ("nodes", "degree", "one_way", "least"),
    [(15, 3, False, 22), (12, 3, False, 18), (12, 2, True, 24), (10, 5, False, 25), (7, 3, False, 10)],
)
def test_a_lift_of_any_nodes_keeps_to_its_degree(nodes: int, degree: int, one_way: bool, least: int) -> None:
    """For every divisor of the nodes; of an odd number of ports all but one have a link."""
    instance = synth.make("topology", nodes=nodes, degree=degree, one_way=one_way, objective="hops")
    assert isinstance(instance, TopologyInstance)
    assert isinstance(instance.plant, Budget)
    for positions in (p for p in range(1, nodes + 1) if nodes % p == 0):
        lift = random_lift(instance.plant, positions, np.random.default_rng(positions))
        lift.shift[(lift.to == np.arange(positions)[:, None]) & (lift.shift == 0)] = 1  # no loops, where none are made
        circuits = circuits_of(lift, one_way)
        assert len(circuits) <= nodes * degree // (1 if one_way else 2)
        faults = check_topology(instance, Topology(circuits)).faults
        assert all("no path leads" in fault for fault in faults), faults
    record = synth.solve(instance, "search", options={"moves": 200, "starts": 3})
    assert record.ok
    assert least <= record.data["verified"]["facts"]["circuits"] <= nodes * degree // (1 if one_way else 2)


def test_trees_over_paths_of_any_length_come_near_the_program() -> None:
    """A ring of four with a chord; what is found is no worse than either kind of trees."""
    instance = synth.make("topology", nodes=4, degree=3)
    assert isinstance(instance, TopologyInstance)
    circuits = np.array([[0, 0, 1], [0, 1, 2], [0, 2, 3], [0, 3, 0], [0, 0, 2]])
    folds = folded(arcs_of(instance, circuits), [])
    alone, around = (
        [folds.load(flow, rounds) for flow, rounds in tree_flows(folds, RunOptions(), detours)][-1]
        for detours in (False, True)
    )
    found = routed(instance, circuits, RunOptions(time_limit_s=None))
    assert found is not None
    assert check_topology(instance, found[1]).value == pytest.approx(float(found[0]))
    assert found[0] <= min(alone, around)
    assert float(around) == pytest.approx(float(found[0]), rel=0.05)
