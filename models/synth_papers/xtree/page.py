"""XTree's printed numbers beside ours: the worked example, the mesh's bounds, figures 7 to 9, the erratum; and the
records of all shipped instances, which the README's table shows."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np
import pandas as pd

from synth.errors import InputError
from synth.network import Network
from synth.network.builders import RING_DIRECTIONS, grid, interleaved_ring
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.printed import Printed
from synth.reproduction.stored import Opening, Stored, numbers
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.references.xtree import allgather
from synth_papers.xtree import bandwidth, chunks, directions, llm
from synth_papers.xtree.bandwidth import EQUIMESH_BOUND, FOREST, MESH_BOUND, OURS, SATURATED, XTREE, made

SIZES = ((5, 11), (8, 8))
ALONE = {"warm_start": "off", "relaxation": "off"}
FOUR_STEPS = {"horizon": "4", "relaxation": "off", "counting": "off"}  # the solver itself refutes
PRINTED = printed.read(__file__)
QUESTIONS = ("equimesh-2x3-c4", "equimesh-3x3-c2", "equimesh-4x4-c1", "equimesh-5x5-c1", "equimesh-5x5-c2")


def reproduce(page: Reproduction) -> None:
    """Everything of the paper that our models compute."""
    _worked_example(page)
    _mesh_bounds(page)
    _degrees(page)
    errata(page)
    directions.directions(page)
    _greedy(page)
    found = _bandwidth(page)
    chunks.reproduce(page)
    _workloads(page, found)
    if page.quick:
        page.skip("all shipped instances, the programs without help, chunk counts above 4, 5x11 (--quick)")
    else:
        _shipped(page)
        _alone(page)
    page.note(
        "TTO and TidalMesh are reconstructions from one sentence each, so the originals may be faster. They are never "
        "faster than the bound of any algorithm on the mesh, which stands beside them everywhere."
    )


def _worked_example(page: Reproduction) -> None:
    example = page.shipped("xtree", "equimesh-2x3-c4")
    [(_, best)] = page.solve([example], ["ilp"], time_limit=120.0)
    proof = f"`ilp`, {best['termination']}; {best['bound_proof']}"
    page.compare(PRINTED["worked-example.depth"], best.value, proof)
    refuted = []
    for method, solver in (("ilp", "highs"), ("ilp", "scip"), ("ilp", "gurobi"), ("cpsat", "cpsat")):
        try:
            [(_, record)] = page.solve([example], {method: FOUR_STEPS}, solver=solver, part="four-steps")
        except InputError as error:  # a solver that is not installed
            page.skip(f"4 timesteps refuted by {solver}: {error}")
            continue
        if record["termination"] == "infeasible":
            refuted.append(solver)
    page.compare(PRINTED["worked-example.refuted"], len(refuted), ", ".join(refuted))


def _mesh_bounds(page: Reproduction) -> None:
    for side, stated in PRINTED.within("mesh-bound").items():
        timesteps, words, _ = lower_bound(made("mesh", int(side), int(side)))
        page.compare(stated, timesteps, words)


def _degrees(page: Reproduction) -> None:
    for rows, cols in SIZES:
        network = made("equimesh", rows, cols).topology
        degrees = np.concatenate([network.in_degree, network.out_degree])
        page.compare(PRINTED[f"degree.{rows}x{cols}.least"], int(degrees.min()))
        page.compare(PRINTED[f"degree.{rows}x{cols}.largest"], int(degrees.max()))


def printed_ring(length: int, anticlockwise: bool) -> list[int]:
    """Algorithm 1 as printed, its ranges read with both ends: ``[1, n-2]`` and ``[0, n-2]`` in steps of 2."""
    odds, evens = list(range(1, length - 1, 2)), list(range(0, length - 1, 2))
    return evens + odds[::-1] if anticlockwise else odds + evens[::-1]


def _with_printed_rings(rows: int, cols: int) -> Network:
    """The mesh with the four rings of Algorithm 1 as printed."""
    mesh = grid((rows, cols), wrap=False)
    ids = np.arange(rows * cols).reshape(rows, cols)
    links = list(zip(mesh.src.tolist(), mesh.dst.tolist(), strict=True))
    for edge in (ids[0], ids[-1], ids[:, 0], ids[:, -1]):
        order = [int(edge[p]) for p in printed_ring(len(edge), True)]
        if len(order) > 1:
            links += list(zip(order, order[1:] + order[:1], strict=True))
    return Network(rows * cols, links)


def errata(page: Reproduction) -> None:
    """Algorithm 1's ranges."""
    missing = {n: sorted(set(range(n)) - set(printed_ring(n, True))) for n in range(2, 12)}
    degrees = {(r, c): int(_with_printed_rings(r, c).in_degree.min()) for r, c in SIZES}
    drawn = [0, 1, 3, 4, 2]
    corrected = interleaved_ring(5, RING_DIRECTIONS[1])
    turned = corrected[corrected.index(0) :] + corrected[: corrected.index(0)]
    page.erratum(
        "Algorithm 1, line 1",
        "odds = range[1, n-2, 2], evens = range[0, n-2, 2].",
        "Both ranges must reach n-1: all n positions are in the ring.",
        f"with the printed ranges (both ends included) the ring over n positions misses, for n = 2 to 11: "
        f"{'; '.join(f'{n}: {positions}' for n, positions in missing.items())}. Least degree of the network then: "
        + ", ".join(f"{r}x{c}: {d}" for (r, c), d in degrees.items())
        + f" instead of 4. With all positions the ring over 5 is {'-'.join(map(str, [*turned, 0]))}, the one that "
        f"figure 5a draws{'' if turned == drawn else ' (not the same)'}.",
    )


def _greedy(page: Reproduction) -> None:
    """Timesteps of the published greedy over seeds: its ties are not stated, so we draw them."""
    rows = []
    for r, c in ((2, 3), (3, 3), (4, 4), (5, 5), (8, 8), (5, 11)):
        if page.quick and r * c > 25:
            continue
        instance = made("equimesh", r, c, 4)
        seeds = 100 if r * c <= 25 else 20
        schedules = [allgather(instance.topology, 4, np.random.SeedSequence(seed).spawn(1)[0]) for seed in range(seeds)]
        verdict = check_schedule(instance, min(schedules, key=lambda schedule: schedule.steps))
        steps = [schedule.steps for schedule in schedules]
        if not verdict.ok or verdict.value != min(steps):
            raise RuntimeError(f"the greedy's schedule on {r}x{c} fails its check: {verdict.faults}")
        rows.append((f"{r}x{c}", lower_bound(instance)[0], min(steps), statistics.median(steps), max(steps), seeds))
        if (r, c) == (2, 3):
            what = "their greedy with random ties, best of 100 seeds"
            words = "the text leaves ties and the choice of links open"
            page.beside(PRINTED["worked-example.depth"], what, min(steps), words)
    columns = ["EquiMesh, C = 4", "bound", "best", "median", "worst", "seeds"]
    page.table(
        "The published greedy (Algorithm 2) with random ties, timesteps; the best is replayed",
        pd.DataFrame(rows, columns=columns),
    )


def _bandwidth(page: Reproduction) -> dict[tuple[int, int, str], bandwidth.Curves]:
    found = {}
    for collective, figure in (("allgather", 7), ("allreduce", 8)):
        sizes = SIZES[1:] if page.quick else SIZES
        curves = [bandwidth.curves(page, rows, cols, collective) for rows, cols in sizes]
        for curve in curves:
            found[curve.rows, curve.cols, collective] = curve
            _saturated(page, curve)
            name = f"bandwidth-{curve.rows}x{curve.cols}-{collective}"
            page.table(f"Effective bandwidth, {curve.name}, GB/s", bandwidth.table(curve), file=name)
        drawn = bandwidth.draw({curve.name: bandwidth.table(curve) for curve in curves})
        page.figure(drawn, f"figure-{figure}", _caption(collective, figure))
    with_forest = [curve for curve in found.values() if FOREST in curve.schedules]
    page.table(
        "Allreduce on the mesh by `forest` (ours), timesteps",
        bandwidth.forest_table(with_forest),
    )
    _what_is_left(page, with_forest)
    page.note(
        "Effective bandwidth: bytes that every node ends up with over completion time in the alpha-beta model. Every "
        "algorithm takes the number of chunks (1, 4; TTO, TidalMesh and `forest` also 16, 32, `forest` also 64) that "
        "suits the size best. The paper does not state its sizes or chunk counts; ratios are taken at 1 GiB."
    )
    return found


def _caption(collective: str, figure: int) -> str:
    return (
        f"Effective bandwidth of the {collective} over message size, 128 GB/s and 20 ns per hop (figure {figure}). "
        "No algorithm is above its network's bound."
    )


def opening(found: Stored) -> Opening:
    """What EquiMesh gains over the mesh at 1 GiB, and how far both are from their bounds."""
    rates = {
        name: numbers(found.table(f"Effective bandwidth, 8x8 {name}").iloc[-1]) for name in ("allgather", "allreduce")
    }
    gather, reduce = rates["allgather"], rates["allreduce"]
    mesh = max(gather[name] for name in bandwidth.BASELINES)
    greedy = found.table("The published greedy").set_index("EquiMesh, C = 4").loc["5x11"]
    chunks = found.table("With more chunks per node")
    [pull] = chunks[(chunks["EquiMesh"] == "5x11") & (chunks["C"] == "4")]["least timesteps"]
    theirs = max(reduce[name] for name in bandwidth.BASELINES)
    sentences = (
        f"At 1 GiB a node, an allgather on the 8x8 EquiMesh runs at {gather[XTREE]:.0f} GB/s by XTree and at "
        f"{gather[OURS]:.0f} GB/s by our `pull`. No algorithm can be above {gather[EQUIMESH_BOUND]:.0f} GB/s; the "
        f"best baseline on the mesh reaches {mesh:.0f} GB/s.",
        f"An allreduce by XTree on EquiMesh is {reduce[XTREE] / theirs:.2f} times as fast as the paper's best baseline "
        f"on the mesh, but only {reduce[XTREE] / reduce[FOREST]:.2f} times as fast as our `forest` there.",
        f"With four chunks a node on 5x11 the published greedy needs {greedy['best']} timesteps in the best of "
        f"{greedy['seeds']} tries; our `pull` needs {pull}, and no schedule fewer than {greedy['bound']}.",
    )

    def tables(collective: str) -> dict[str, pd.DataFrame]:
        names = (f"{rows}x{cols} {collective}" for rows, cols in SIZES)
        return {name: found.table(f"Effective bandwidth, {name}") for name in names}

    drawn = [
        (f"figure-{number}", _caption(name, number), partial(bandwidth.draw, tables(name)))
        for name, number in (("allgather", 7), ("allreduce", 8))
    ]
    return Opening(sentences, "figure-7", drawn)


def _saturated(page: Reproduction, curve: bandwidth.Curves) -> None:
    stated = PRINTED[f"gain.{curve.collective}.{curve.rows}x{curve.cols}"]
    best, seconds = curve.best_baseline(SATURATED)
    ours, least = curve.seconds(OURS, SATURATED), curve.seconds(MESH_BOUND, SATURATED)
    page.compare(stated, seconds / curve.seconds(XTREE, SATURATED), f"best baseline: {best}")
    page.beside(stated, "ours over the best mesh baseline", seconds / ours, best)
    bound = f"mesh bound {SATURATED / least / 1e9:.1f} GB/s"
    page.beside(stated, "ours over any algorithm on the mesh, at least", least / ours, bound)
    if FOREST in curve.schedules:
        _with_forest(page, curve, stated)


def _with_forest(page: Reproduction, curve: bandwidth.Curves, stated: Printed) -> None:
    """The same ratios where the mesh may run ``forest`` too, and how near that comes to the mesh's bound."""
    baseline, before = curve.best_baseline(SATURATED)
    forest, now = curve.seconds(FOREST, SATURATED), curve.best_on_mesh(SATURATED)[1]
    rate = f"`forest` on the mesh: {SATURATED / forest / 1e9:.1f} GB/s"
    for what, label in (("XTree", XTREE), ("ours", OURS)):
        ratio = now / curve.seconds(label, SATURATED)
        page.beside(stated, f"{what} over the best on the mesh, `forest` (ours) included", ratio, rate)
    share, other = (100 * curve.share(seconds, SATURATED) for seconds in (forest, before))
    page.compare(PRINTED[f"forest-share.{curve.rows}x{curve.cols}"], share, f"{baseline}: {other:.2f} %")


def _what_is_left(page: Reproduction, found: list[bandwidth.Curves]) -> None:
    """The remark on the printed gain of the allreduce, every number of ours in it computed at 1 GiB."""
    stated = PRINTED["gain.allreduce.8x8"]
    shares, gains, most = [], [], []
    for curve in found:
        mesh, now = f"{curve.rows}x{curve.cols}", curve.best_on_mesh(SATURATED)[1]
        shares.append(f"{100 * curve.share(curve.seconds(FOREST, SATURATED), SATURATED):.2f} % on {mesh}")
        published, ours = (now / curve.seconds(label, SATURATED) for label in (XTREE, OURS))
        gains.append(f"{published:.2f}x on {mesh} ({ours:.2f}x with our schedules on EquiMesh too)")
        bounds = curve.seconds(MESH_BOUND, SATURATED) / curve.seconds(EQUIMESH_BOUND, SATURATED)
        most.append(f"{bounds:.2f}x on {mesh}")
    page.note(
        f"What is left of the paper's {stated.text} in an allreduce: its baselines leave part of the mesh's bandwidth "
        f"unused. `forest` is ours and no baseline of the paper's. At 1 GiB it reaches {' and '.join(shares)} of the "
        "most that any algorithm on the mesh can reach. Over a mesh that runs it, XTree on EquiMesh gains "
        f"{', '.join(gains)}. The bounds of the two networks differ by {' and '.join(most)}. The rows beside the "
        f"printed {stated.value} that do not name `forest`, and the columns 'best mesh baseline' and 'speedup' of the "
        "language models, stay with the paper's own baselines."
    )


def _workloads(page: Reproduction, found: dict[tuple[int, int, str], bandwidth.Curves]) -> None:
    table = llm.speedups(found[8, 8, "allgather"], found[8, 8, "allreduce"])
    page.table(
        f"Language models on 8x8, {llm.TOKENS} tokens, under the model of `synth_papers.xtree.llm`", table, "llm"
    )
    page.figure(
        llm.draw(table),
        "figure-9",
        "Speedup of XTree on EquiMesh over the mesh, one pass through all layers (the paper's figure 9).",
    )
    for which in ("forward", "backward, allgather hidden", "backward, all exposed"):
        direction, _, remark = which.partition(", ")
        stated, rows = PRINTED.within(f"figure-9.{direction}"), table[table["pass"] == which]
        values = rows["speedup"]
        ours = {"least": float(values.min()), "largest": float(values.max()), "mean": llm.geometric_mean(values)}
        for name, one in stated.items():
            if remark == "all exposed":
                page.beside(one, one.of, ours[name], remark)
            else:
                page.compare(one, ours[name], remark)
        what = "geometric mean, `forest` (ours) on the mesh"
        page.beside(stated["mean"], what, llm.geometric_mean(rows[llm.OVER_FOREST]), remark)
    page.note(
        f"Figure 9: {llm.TOKENS} tokens, batch 1, one allgather and one allreduce of the activations per block, both "
        "exposed in the forward pass. The paper states neither these nor what overlaps in the backward pass. In our "
        "model communication outweighs compute, so the backward pass gains more than theirs unless the allgathers are "
        "hidden completely. The two backward variants bracket the unstated overlap; that one comes close to the "
        "printed mean does not show that it is theirs."
    )


def _shipped(page: Reproduction) -> None:
    """The default methods and all others on every shipped instance: the records behind the README's table."""
    runs = list(page.study("xtree-published"))
    for _ in page.solve([page.shipped("xtree", "kautz-9x2-c1")], ["relaxation"], time_limit=600.0):
        pass
    page.say(f"{len(runs)} runs on shipped instances")


def _alone(page: Reproduction) -> None:
    """The programs without references and relaxation, from the counting bound on."""
    rows = []
    for method, solver, names in (
        ("ilp", "highs", (*QUESTIONS, "equimesh-5x11-c1")),
        ("cpsat", "cpsat", QUESTIONS),
        ("ilp", "scip", QUESTIONS[:2]),
        ("ilp", "gurobi", QUESTIONS[:1]),
    ):
        instances = [page.shipped("xtree", name) for name in names]
        try:
            for instance, record in page.solve(
                instances, {method: ALONE}, solver=solver, time_limit=300.0, part="alone"
            ):
                rows.append((instance.name, method, solver, record.value, record.bound, record["termination"]))
        except InputError as error:
            page.skip(f"programs alone with {solver}: {error}")
    columns = ["instance", "method", "solver", "value", "bound", "ended"]
    page.table(
        "The plain programs, without references or relaxation, from the counting bound on",
        pd.DataFrame(rows, columns=columns),
    )
