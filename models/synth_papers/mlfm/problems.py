"""The problems of the mlfm family: shipped instances, single failures, blocks on which the rule fails, demands.

``python -m synth_papers.mlfm.problems instances``, from the top folder, writes ``instances/mlfm`` (seeded; the
files are the same every time). ``synth reproduce mlfm`` solves the others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from synth.instance import parse
from synth_models.mlfm.instance import MLFMInstance

BLOCKS = ((2, 3, 2), (3, 3, 2), (3, 4, 2), (2, 4, 3))  # the paper's experiments on d = 3
COMMAND = "python -m synth_models.mlfm.study"  # this module when the files were made; their hashes stand in records


HERE = "python -m synth_models.mlfm.paper.problems"  # likewise, of five that came later
FIVE = ("000 010", "000 020", "100 020", "100 110", "001 110")  # a ring of conflicts, as layer column slot
SPINES_FAILED, DRAWS = (1, 10, 30, 60, 100), 200


def instance(name: str, source: str, **raw: Any) -> MLFMInstance:
    """An instance from the fields of its file."""
    made = parse({"family": "mlfm", "name": name, "source": source} | raw, MLFMInstance, name)
    assert isinstance(made, MLFMInstance)
    return made


def block(layers: int, columns: int, servers: int) -> dict[str, int]:
    """The ``block`` of an instance file."""
    return {"layers": layers, "columns": columns, "servers": servers}


def shipped() -> Iterator[MLFMInstance]:
    """The instances of the repository."""
    for n, columns, m in BLOCKS:
        source = f"experiment of the MLFM paper: n = {n}, l = {columns}, m = {m} on 6-port switches (d = 3)"
        yield instance(f"d3-n{n}l{columns}m{m}", source, d=3, block=block(n, columns, m))
    one, both = ("minimal",), ("minimal", "detour")
    sizes = {(3, 3, 3, 3): one, (4, 4, 3, 4): both, (4, 2, 2, 4): both, (4, 4, 4, 4): one}
    for (d, n, columns, m), routes in ((size, routes) for size, allowed in sizes.items() for routes in allowed):
        suffix = "-detour" if routes == "detour" else ""
        source = f"{COMMAND} instances: m > l-1, where the published rule does not hold"
        yield instance(f"d{d}-n{n}l{columns}m{m}{suffix}", source, d=d, block=block(n, columns, m), routes=routes)
    for seed, size in enumerate((20, 36, 60)):
        source = f"{COMMAND} instances: the {size} first free servers of a machine after random jobs (seed {seed})"
        yield instance(f"d4-fragment-{size}", source, d=4, subset=fragment(4, size, seed), routes="detour")
    job = {"d": 3, "block": block(2, 4, 3), "routes": "detour"}
    failed: dict[str, dict[str, Any]] = {
        "link": {"links": [{"leaf": [0, 0], "spine": [0, 1]}]},
        "spine": {"spines": [[0, 1]]},
        "leaf": {"leaves": [[0, 0]]},
        "server": {"servers": [[0, 0, 0]]},
    }
    for kind, parts in failed.items():
        yield instance(f"d3-n2l4m3-{kind}", f"{COMMAND} instances: a failed {kind}", failed=parts, **job)
    source = f"{COMMAND} instances: the whole machine with a failed spine"
    yield instance("d4-n4l5m4-spine", source, d=4, block=block(4, 5, 4), failed={"spines": [[0, 1]]}, routes="detour")
    source = "the 32 servers of the MLFM paper's testbed (section 3): two on every leaf of the last layer, else three"
    yield instance("d3-testbed-32", source, d=3, subset=testbed())
    yield from demands()
    source = "the whole machine of 36-port switches in the MLFM paper, 6156 servers"
    yield instance("d18-n18l19m18", source, d=18, block=block(18, 19, 18))


def testbed() -> list[list[int]]:
    """The servers of the paper's experiments: all of 6-port switches but for one slot of the last layer."""
    return [[i, j, k] for i in range(3) for j in range(4) for k in range(3) if i < 2 or k < 2]


def demands() -> Iterator[MLFMInstance]:
    """Partial all-to-alls: who sends to whom is given pair by pair."""
    ends = [[[int(digit) for digit in word] for word in pair.split()] for pair in FIVE]
    note = f"{HERE} instances: five transfers, two on every server and link at most, that need three phases"
    yield instance("d2-five-pairs", note, d=2, demand=[pair(source, target) for source, target in ends])
    source = f"{HERE} instances: every server of the job (2, 4, 3) to its six neighbours in a torus of 2 x 4 x 3"
    yield instance("d3-stencil-24", source, d=3, block=block(2, 4, 3), demand=stencil(2, 4, 3))
    source = f"{HERE} instances: 60 servers, each to 0 to 8 others, one to three times (seed 0)"
    yield instance("d4-pairs-60", source, d=4, demand=scattered(4, 60, 8, 0))
    failed = {"links": [{"leaf": [0, 0], "spine": [0, 1]}], "spines": [[2, 3]], "servers": [[3, 4, 3]]}
    source = f"{HERE} instances: the same with a failed cable, spine and server"
    yield instance("d4-pairs-60-failed", source, d=4, demand=scattered(4, 60, 8, 0), failed=failed, routes="detour")
    source = f"{HERE} instances: 24 servers, each to 0 to 12 others, one to three times, a failed leaf (seed 1)"
    failed = {"leaves": [[2, 3]]}
    yield instance("d3-pairs-24-leaf", source, d=3, demand=scattered(3, 24, 12, 1), failed=failed, routes="detour")


def pair(source: list[int], target: list[int], count: int = 1) -> dict[str, Any]:
    """A pair of the ``demand`` of an instance file."""
    return {"source": source, "target": target, "count": count}


def stencil(layers: int, columns: int, servers: int) -> list[dict[str, Any]]:
    """Every server of a block to the next one in each direction of a torus; where both are the same one, twice."""
    sides = (layers, columns, servers)
    counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for server in np.ndindex(*sides):
        for axis, way in np.ndindex(3, 2):
            other = list(server)
            other[axis] = (other[axis] + 2 * way - 1) % sides[axis]
            counts[server, tuple(other)] = counts.get((server, tuple(other)), 0) + 1
    return [pair(list(one), list(other), count) for (one, other), count in counts.items()]


def scattered(d: int, size: int, most: int, seed: int) -> list[dict[str, Any]]:
    """Random servers of MLFM(d), each of which sends to 0 to ``most`` others, one to three times."""
    random = np.random.default_rng(seed)
    every = [[i, j, k] for i, j, k in np.ndindex(d, d + 1, d)]
    chosen = [every[number] for number in random.permutation(len(every))[:size]]
    found = []
    for place, server in enumerate(chosen):
        others = [other for other in random.permutation(size) if other != place][: random.integers(0, most + 1)]
        found += [pair(server, chosen[other], int(random.integers(1, 4))) for other in others]
    return found


def random_demands(count: int) -> Iterator[tuple[dict[str, Any], MLFMInstance]]:
    """(what it is, instance): seeded random demands on MLFM(3), from sparse to crowded, without and with failures."""
    for seed in range(count):
        for most, failing in ((2, False), (6, False), (12, False), (6, True)):
            random = np.random.default_rng([seed, most])
            failed: dict[str, Any] = {}
            if failing:
                cables = [(i, j, o) for i, j, o in np.ndindex(3, 4, 4) if o != j]
                chosen = [cables[number] for number in random.permutation(len(cables))[:2]]
                failed = {"links": [{"leaf": [i, j], "spine": sorted((j, o))} for i, j, o in chosen]}
            name = f"d3-random-{most}-{seed}" + "-failed" * failing
            asked, source = scattered(3, 24, most, seed), "synth reproduce mlfm: random demands"
            routes = "detour" if failing else "minimal"
            made = instance(name, source, d=3, demand=asked, failed=failed, routes=routes)
            yield {"targets": f"0 to {most}", "failed": "two cables" if failing else "–"}, made


def damaged_machines() -> Iterator[tuple[str, int, int, MLFMInstance]]:
    """(kind, failed parts, seed, instance): the whole machine of 36-port switches with random cables or spines
    gone, the first three seeds that leave every pair a route."""
    d = 18
    cables = [(i, j, other) for i, j, other in np.ndindex(d, d + 1, d + 1) if other != j]
    for kind, counts in (("cables", (1, 10, 100)), ("spines", SPINES_FAILED)):
        for count in counts:
            seeds = range(3) if kind == "cables" else [seed for seed in range(DRAWS) if all_joined(d, count, seed)][:3]
            for seed in seeds:
                if kind == "cables":
                    chosen = [cables[number] for number in np.random.default_rng(seed).permutation(len(cables))[:count]]
                    failed: dict[str, Any] = {
                        "links": [{"leaf": [i, j], "spine": sorted((j, c))} for i, j, c in chosen]
                    }
                else:
                    failed = {"spines": failed_spines(d, count, seed)}
                name, source = f"d18-{kind}-{count}-seed-{seed}", "synth reproduce mlfm: damaged machines"
                whole = block(d, d + 1, d)
                yield kind, count, seed, instance(name, source, d=d, block=whole, failed=failed, routes="detour")


def failed_spines(d: int, count: int, seed: int) -> list[list[int]]:
    """So many of the spines of MLFM(d), by chance."""
    spines = [[a, b] for a, b in np.ndindex(d + 1, d + 1) if a < b]
    return [spines[number] for number in np.random.default_rng(seed).permutation(len(spines))[:count]]


def all_joined(d: int, count: int, seed: int) -> bool:
    """Whether every pair of columns has a spine left or a third column with spines to both."""
    alive = ~np.eye(d + 1, dtype=bool)
    for a, b in failed_spines(d, count, seed):
        alive[a, b] = alive[b, a] = False
    over = alive.astype(int) @ alive
    return bool((alive | (over > 0)).all())


def fragment(d: int, size: int, seed: int) -> list[list[int]]:
    """What first-fit gives a job of ``size`` servers after jobs of 1 to 12 filled the machine and random ones ended."""
    random = np.random.default_rng(seed)
    total = d * d * (d + 1)
    jobs = np.repeat(np.arange(total), random.integers(1, 13, total))[:total]
    free = np.zeros(total, dtype=bool)
    for job in random.permutation(np.unique(jobs)):
        if free.sum() >= size:
            break
        free |= jobs == job
    chosen = np.flatnonzero(free)[:size]
    return [list(map(int, server)) for server in zip(*np.unravel_index(chosen, (d, d + 1, d)), strict=True)]


def single_failures() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, part, ``failed``) for every cable, spine and leaf of MLFM(3)."""
    d = 3
    for i in range(d):
        for j in range(d + 1):
            for other in range(d + 1):
                if other != j:
                    a, b = sorted((j, other))
                    yield "link", f"{i}.{j}_{a}-{b}", {"links": [{"leaf": [i, j], "spine": [a, b]}]}
    for a in range(d + 1):
        for b in range(a + 1, d + 1):
            yield "spine", f"{a}-{b}", {"spines": [[a, b]]}
    for i in range(d):
        for j in range(d + 1):
            yield "leaf", f"{i}.{j}", {"leaves": [[i, j]]}


def failures() -> Iterator[tuple[str, str, MLFMInstance]]:
    """(kind, part, instance) for every single failure of the (2, 4, 3) job on MLFM(3)."""
    for kind, part, failed in single_failures():
        name, source = f"d3-n2l4m3-{kind}-{part}", "synth reproduce mlfm: single failures"
        made = instance(name, source, d=3, block=block(2, 4, 3), failed=failed, routes="detour")
        yield kind, part.replace("_", " to "), made


def irregular_blocks(largest: int) -> Iterator[tuple[dict[str, Any], MLFMInstance]]:
    """(sizes, instance) for every block with m > l-1 on d <= ``largest``, by minimal routes and with detours."""
    for d in range(1, largest + 1):
        for n, columns, m in np.ndindex(d, d + 1, d):
            for routes in ("minimal", "detour") if m + 1 > columns else ():
                name, source = f"d{d}-n{n + 1}l{columns + 1}m{m + 1}-{routes}", "synth reproduce mlfm: blocks"
                made = instance(name, source, d=d, block=block(n + 1, columns + 1, m + 1), routes=routes)
                yield {"d": d, "n": n + 1, "l": columns + 1, "m": m + 1, "routes": routes}, made


def main(arguments: list[str]) -> int:
    """Write the shipped instances; 2 when asked for anything else."""
    if arguments != ["instances"]:
        print(f"usage: {COMMAND} instances", file=sys.stderr)
        return 2
    Path("instances/mlfm").mkdir(parents=True, exist_ok=True)
    for made in shipped():
        Path(f"instances/mlfm/{made.name}.json").write_text(made.to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
