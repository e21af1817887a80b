"""Steps that are any matrix of demands (section 3.3): volumes, repeated pairs, GPUs with several partners; against
brute force over all topologies and against what such a matrix can be rewritten to."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from models.harvest.brute_force import demand_of, optimum, random_one_to_many
from models.harvest.instances import made, stated
from models.harvest.test_brute_force import OFF, nothing_beats, proven_optimal

import synth
from synth.family import defaults_for
from synth.method import load
from synth.options import RunOptions
from synth_models.harvest import FAMILY
from synth_models.harvest.check.certificate_rows import whole_links_load
from synth_models.harvest.check.replay import check_schedule, step_times
from synth_models.harvest.parts.demands import direct_load, most_partners
from synth_models.harvest.parts.flows import layered, path
from synth_models.harvest.parts.flows.profiles import _distances, profile
from synth_models.harvest.parts.shared_topologies import shared, shared_topologies, suited_ring
from synth_models.harvest.parts.topologies import circulant, direct, kautz

HUGE = 2**40


def value_of(instance, method, **switches):
    """The checked value and the bound of a method."""
    outcome = FAMILY.method(method).load()(instance, RunOptions(solver="highs", method=switches, time_limit_s=60))
    if outcome.solution is None:
        assert load(FAMILY.check_bound)(instance, outcome.bound, outcome.certificate) == []
        return None, outcome.bound
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    return verdict.value, outcome.bound


def with_optimum(numbers, sizes=(2, 3, 4)):
    """Random demands and the least time of each."""
    demands = (random_one_to_many(number, sizes) for number in numbers)
    return ((raw, optimum(raw)) for raw in demands)


FEW, MANY = range(5), pytest.param(range(300), marks=pytest.mark.slow)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("numbers", [FEW, MANY], ids=len)
def test_misocp_is_optimal_on_one_to_many_demands(solver, numbers):
    for raw, best in with_optimum(numbers):
        proven_optimal(raw, best, solver)


@pytest.mark.long
def test_nothing_beats_the_optimum_of_one_to_many_demands():
    for raw, best in with_optimum(range(20, 24)):
        nothing_beats(raw, best)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "sizes", "most"), [(300, (2, 3, 4), 270), (100, (5, 6), 60)])
def test_nothing_beats_the_optimum_of_many_demands_and_candidates_meets_that_of_most(number, sizes, most):
    met = 0
    for raw, best in with_optimum(range(number), sizes):
        nothing_beats(raw, best)
        met += value_of(stated(**raw), "candidates")[0] <= best * (1 + 1e-9)
    assert met >= most


def test_one_step_by_hand():
    """GPU 0 sends 3 s of a port's time to GPU 1 and 1 s to GPU 2. Two ports, cheap hops: 4 s over both, 2 s, and two
    hops, as a part goes by way of the other. Dear hops: direct links, one each, 3 s. Four ports: 3 and 1, 1 s."""
    steps = [{"bytes": 1e11, "pairs": [[0, 1], [0, 2], [0, 1]], "volumes": [1, 1, 2]}]
    fabric = OFF | {"gpus": 3, "reconfiguration_delay": 0.0, "steps": steps, "latency": "on"}
    for ports, delta, seconds, hops, theta in (
        (2, 0.25, 2.5, 2, 1.0),
        (2, 1.25, 4.25, 1, 2 / 3),
        (4, 1.25, 2.25, 1, 1),
    ):
        instance = stated(**fabric | {"ports": ports, "delta": delta})
        for method in ("misocp", "candidates", "dp_k"):
            record = synth.solve(instance, method=method, time_limit=60)
            assert record.value == pytest.approx(seconds, rel=1e-9)
            schedule = load(FAMILY.unpack)(instance, record.packed)
            times = step_times(instance, schedule)
            assert (times.hops[0], times.theta[0]) == (hops, pytest.approx(theta))
            assert "93.1 GiB to 279 GiB" in load(FAMILY.describe)(instance, schedule)
            frames = FAMILY.capability("frames")(instance, schedule)
            moved = sum(float(frames.items[item].split()[0]) for item in frames.item)
            assert moved == pytest.approx(4e11 if hops == 1 else 5e11)


REWRITTEN = ("candidates", "dp_k", "greedy", "static_ring", "misocp", "bound")


@pytest.mark.long
def test_how_a_matrix_is_written_changes_nothing():
    """Volumes split over repeats, doubled at half the bytes, and pairs in another order."""
    pairs, volumes = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]], [4, 2, 2, 6, 8]
    again = [[0, 2], *pairs, [3, 0]]
    forms = [
        {"bytes": 1e5, "pairs": pairs, "volumes": volumes},
        {"bytes": 2e5, "pairs": pairs, "volumes": [v // 2 for v in volumes]},
        {"bytes": 1e5, "pairs": again, "volumes": [3, 4, 2, 2, 1, 5, 5]},
        {"bytes": 2e5, "pairs": [p for p, v in zip(pairs, volumes, strict=True) for _ in range(v // 2)]},
        {"bytes": 1e5 / 2**20, "pairs": pairs[::-1], "volumes": [v * 2**20 for v in volumes[::-1]]},
    ]
    for method, ports in product(REWRITTEN, (1, 2)):
        found = [
            value_of(stated(ports=ports, steps=[form, {"bytes": 1e6, "shift": 1}, form]), method, **_switches(method))
            for form in forms
        ]
        for value, bound in found[1:]:
            if method == "bound":
                assert bound == pytest.approx(found[0][1], rel=1e-6)
            else:
                assert value == pytest.approx(found[0][0], rel=2e-4 if method == "misocp" else 1e-9), (method, ports)


def _switches(method):
    return {"symmetry": True, "strengthening": True, "cone": "auto"} if method == "misocp" else {}


def test_all_of_one_volume_is_that_many_bytes():
    """Closed forms too: recursive doubling with volume 3 everywhere is recursive doubling of three times the bytes."""
    plain = made(algorithm="recursive_doubling", gpus=8, ports=1, message_bytes=3e6)
    steps = [
        {"bytes": s.bytes / 3, "pairs": pairs.tolist(), "volumes": [3] * 8}
        for s, pairs in zip(plain.steps, plain.pairs, strict=True)
    ]
    tripled = plain.model_copy(update={"steps": steps})
    assert defaults_for(FAMILY, tripled) == defaults_for(FAMILY, plain)
    for method in defaults_for(FAMILY, plain):
        one, other = synth.solve(plain, method), synth.solve(tripled, method)
        assert (one.value or one.bound) == pytest.approx(other.value or other.bound, rel=1e-6), method
    uneven = plain.model_copy(update={"steps": [s | {"volumes": [1] + [3] * 7} for s in steps]})
    assert "recursive_doubling_closed_form" not in defaults_for(FAMILY, uneven)


@pytest.mark.parametrize("ports", [1, 2])
def test_volumes_far_apart(ports):
    """A trillion beside 1: every pair is still reached, and bounds stay below."""
    steps = [
        {"bytes": 1e-3, "pairs": [[0, 1], [1, 2], [2, 3], [0, 3]], "volumes": [HUGE, 1, 1, HUGE - 1]},
        {"bytes": 1e3, "pairs": [[0, 2], [2, 0], [0, 2], [1, 3]]},
    ]
    raw = stated(ports=ports, steps=steps, reconfiguration_delay=1e-6).model_dump(mode="json")
    best = optimum(raw)
    nothing_beats(raw, best)
    proven_optimal(raw, best)


def test_direct_topologies_share_the_ports_as_well_as_any():
    """Against every matrix of links on the pairs, row and column sums within the ports."""
    random = np.random.default_rng(5)
    for _ in range(40):
        gpus, ports = int(random.integers(2, 4)), int(random.integers(1, 5))
        every = [(u, v) for u in range(gpus) for v in range(gpus) if u != v]
        chosen = [every[i] for i in random.permutation(len(every))[: random.integers(1, 5)]]
        rows = np.array([(*pair, int(random.integers(1, 9))) for pair in chosen])
        links = direct(rows, gpus, ports)
        assert (links is None) == (most_partners(rows) > ports)
        if links is None:
            continue
        count = {(u, v): c for u, v, c in links.tolist()}
        best = min(
            max(Fraction(int(w), c) for (_, _, w), c in zip(rows, counts, strict=True))
            for counts in product(range(1, ports + 1), repeat=len(rows))
            if all(np.bincount(rows[:, side], counts).max() <= ports for side in (0, 1))
        )
        assert max(Fraction(w, count[u, v]) for u, v, w in rows.tolist()) == best


def test_layered_program_and_listed_routes_agree_on_volumes():
    random = np.random.default_rng(8)
    for number in range(8):
        gpus = int(random.integers(5, 8))
        network = kautz(gpus, 2) if number % 2 else None
        links = network.links if network else circulant(gpus, {1: 1, gpus - 2: 2})
        far = _distances(links.tobytes(), gpus)
        every = np.argwhere(~np.eye(gpus, dtype=bool))
        pairs = every[np.sort(random.permutation(len(every))[: gpus + 2])]
        volume = random.choice([1, 2, 5, 1000], len(pairs))
        rows = np.concatenate([pairs, volume[:, None]], axis=1)
        hops = int(far[pairs[:, 0], pairs[:, 1]].max()) + 1
        orbit = np.arange(len(links))
        listed = path.list_routes(rows, links, far, hops)
        loads = []
        for found, share in (
            (listed, path.solve(listed, volume / volume.max(), orbit, links[:, 2])),
            layered.solve(rows, links, far, hops, orbit, links[:, 2]),
        ):
            assert np.bincount(found.pair, share, len(rows)) == pytest.approx(np.ones(len(rows)))
            amount = np.repeat(share * volume[found.pair], np.diff(found.start))
            loads.append((np.bincount(found.link, amount, len(links)) / links[:, 2]).max())
        assert loads[0] == pytest.approx(loads[1], rel=1e-6)


def test_the_layered_program_routes_what_is_too_small_for_it():
    """A volume of 1 beside 2^40 is lost in the program's precision, and goes by a shortest route."""
    gpus = 7
    links = kautz(gpus, 2).links
    far = _distances(links.tobytes(), gpus)
    rows = np.array([[0, 3, HUGE], [1, 4, 1], [1, 5, 1], [0, 6, HUGE], [2, 0, 1]])
    found, share = layered.solve(rows, links, far, 4, np.arange(len(links)), links[:, 2])
    assert np.bincount(found.pair, share, len(rows)) == pytest.approx(np.ones(len(rows)))
    for route, (a, b) in enumerate(zip(found.start, found.start[1:], strict=False)):
        stops = links[found.link[a:b], :2]
        assert stops[0, 0] == rows[found.pair[route], 0]
        assert stops[-1, 1] == rows[found.pair[route], 1]
        assert stops[1:, 0].tolist() == stops[:-1, 1].tolist()


def test_shared_topologies_keep_the_ports():
    """And are tried only where volumes differ; the ring of a path's pairs is that path, closed."""
    for number in range(30):
        instance = stated(**random_one_to_many(number, (3, 4, 6)))
        for topology in shared_topologies(instance):
            for side in (0, 1):
                assert np.bincount(topology.links[:, side], topology.links[:, 2]).max() <= instance.ports
            assert len({(u, v) for u, v, _ in topology.links.tolist()}) == len(topology.links)
            assert np.all(topology.links[:, 0] != topology.links[:, 1])
            assert np.all(topology.links[:, 2] >= 1)
    amount = np.zeros((5, 5))
    amount[[0, 3, 1, 4], [3, 1, 4, 2]] = 1.0
    assert suited_ring(amount).tolist() == [[0, 3, 1], [1, 4, 1], [2, 0, 1], [3, 1, 1], [4, 2, 1]]
    amount[0, 3] = 3.0
    assert [0, 3, 2] in shared(amount, np.zeros((0, 3), dtype=np.int64), 2).tolist()
    assert shared_topologies(made(algorithm="swing", gpus=8, ports=2, message_bytes=1e6)) == []


def test_a_certificate_cannot_swap_pairs_of_other_volume():
    """A renumbering that keeps the pairs, but not their volumes, is refused; so is a bound of the volumes turned up."""
    pairs = [[u, v] for u in range(4) for v in range(4) if u != v]
    volumes = [1 + (u == 0) for u, _ in pairs]
    instance = stated(ports=2, steps=[{"bytes": 1e6, "pairs": pairs, "volumes": volumes}] * 2)
    outcome = FAMILY.method("bound").load()(instance, RunOptions(time_limit_s=30, method={"rates": "on"}))
    check = load(FAMILY.check_bound)
    assert check(instance, outcome.bound, outcome.certificate) == []
    assert outcome.certificate["intervals"]
    turned = {**outcome.certificate, "generators": [[1, 2, 3, 0]]}
    assert "does not map every pattern onto itself" in check(instance, outcome.bound, turned)[0]
    lighter = instance.model_copy(update={"steps": [{"bytes": 1e6, "pairs": pairs}] * 2})
    assert check(lighter, outcome.bound, outcome.certificate) != []


def test_direct_rows_are_refused_where_they_do_not_hold():
    """Two partners on three ports: with one hop a link each, volume 1 a link, with two 2/3. Proven exactly where hops
    are dear; a row of it for steps that differ in bytes, or have more partners than ports, is refused."""
    pairs = [[u, v] for u in range(3) for v in range(3) if u != v]
    instance = stated(
        gpus=3, ports=3, delta=1e-3, steps=[{"bytes": 1e6, "pairs": pairs}, {"bytes": 1e6, "pairs": pairs}]
    )
    best = optimum(instance.model_dump(mode="json"))
    check, bound = load(FAMILY.check_bound), FAMILY.method("bound").load()
    outcome = bound(instance, RunOptions(time_limit_s=30, method={"rates": "on"}))
    assert best * (1 - 1e-9) <= outcome.bound <= best
    assert outcome.bound == pytest.approx(2 * (5e-7 + 1e-3 + 1e-5))
    assert check(instance, outcome.bound, outcome.certificate) == []
    row = {"row": "direct", "pattern": 0, "multiplier": 1e-5}
    for changes, word in (
        ({"steps": [{"bytes": 1e6, "pairs": pairs}, {"bytes": 2e6, "pairs": pairs}]}, "differ in bytes"),
        ({"ports": 1}, "more partners than ports"),
        ({}, ""),
    ):
        other = instance.model_copy(update=changes)
        intervals = [{"first": 0, "last": 1, "rows": [row]}]
        faults = check(other, 1e-9, {"unit_exponent": 60, "generators": [], "bundles": [], "intervals": intervals})
        assert bool(faults) == bool(word)
        assert not faults or word in faults[0]
    for volumes, load_of_one_hop in ([3, 1], Fraction(3)), ([4, 4], Fraction(4)), ([1, 7], Fraction(7)):
        rows = np.array([[0, 1, volumes[0]], [0, 2, volumes[1]]])
        assert direct_load(rows, 2) == whole_links_load(rows.tolist(), 2) == load_of_one_hop
    random = np.random.default_rng(3)
    for _ in range(50):
        rows = np.array([[0, v, int(random.integers(1, 30))] for v in range(1, int(random.integers(2, 6)))])
        ports = int(random.integers(1, 9))
        if len(rows) <= ports:
            links = direct(rows, 6, ports)
            taken = max(Fraction(w, c) for w, c in zip(rows[:, 2].tolist(), links[:, 2].tolist(), strict=True))
            assert direct_load(rows, ports) == whole_links_load(rows.tolist(), ports) == taken


def test_profiles_count_volumes():
    """One-way ring of 4: 5 over one hop and 2 over two share a link; a two-way ring splits a common volume."""
    ring = circulant(4, {1: 1})
    found = profile(np.array([[0, 1, 5], [3, 2, 2], [2, 3, 4]]), ring, 4)
    assert (found.hops.tolist(), found.unit_load.tolist()) == ([3], [7.0])
    both = circulant(6, {1: 1, 5: 1})
    plain = profile(np.array([[u, (u + 2) % 6] for u in range(6)]), both, 6)
    tripled = profile(np.array([[u, (u + 2) % 6, 3] for u in range(6)]), both, 6)
    assert tripled.hops.tolist() == plain.hops.tolist()
    assert tripled.unit_load == pytest.approx(3 * plain.unit_load)


def test_the_oracle_reads_what_the_family_reads():
    for number in range(60):
        raw = random_one_to_many(number, (2, 3, 4, 5, 6))
        instance = stated(**raw)
        for step, rows in zip(raw["steps"], instance.demands, strict=True):
            assert sorted(map(tuple, rows.tolist())) == list(demand_of(step))
