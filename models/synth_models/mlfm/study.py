"""The study of the mlfm family: ``python -m synth_models.mlfm.study PART…``, from the top folder.

* ``instances``: writes ``instances/mlfm`` (seeded; the files are the same every time).
* ``failures``: all single-link, single-spine and single-leaf failures of the (2, 4, 3) job, one table.
* ``blocks``: all blocks with m > l-1 on d <= 4, with minimal routes and with detours, one table.
* ``figure3``: throughput of the optimum, ours and shift as the paper's figure 3 shows it, from published records.
* ``gaps``: value, bound and gap of every published record.

All but the first read and write below ``results/published/mlfm``; ``gaps`` and ``figure3`` need the records of
``synth solve instances/mlfm --results results/published`` with every method named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synth
from synth import record as records
from synth.api import find_instance
from synth.instance import parse
from synth_models.mlfm.check import check_phases
from synth_models.mlfm.family import MLFMFamily
from synth_models.mlfm.instance import MLFMInstance

FOLDER = Path("results/published/mlfm")
BLOCKS = ((2, 3, 2), (3, 3, 2), (3, 4, 2), (2, 4, 3))  # the paper's experiments on d = 3
COMMAND = "python -m synth_models.mlfm.study"


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
    for d, n, columns, m, routes in (
        (3, 3, 3, 3, "minimal"), (4, 4, 3, 4, "minimal"), (4, 4, 3, 4, "detour"), (4, 2, 2, 4, "minimal"),
        (4, 2, 2, 4, "detour"), (4, 4, 4, 4, "minimal"),
    ):  # fmt: skip
        suffix = "-detour" if routes == "detour" else ""
        source = f"{COMMAND} instances: m > l-1, where the published rule does not hold"
        yield instance(f"d{d}-n{n}l{columns}m{m}{suffix}", source, d=d, block=block(n, columns, m), routes=routes)
    for seed, size in enumerate((20, 36, 60)):
        source = f"{COMMAND} instances: the {size} first free servers of a machine after random jobs (seed {seed})"
        yield instance(f"d4-fragment-{size}", source, d=4, subset=fragment(4, size, seed), routes="detour")
    job = {"d": 3, "block": block(2, 4, 3), "routes": "detour"}
    failed: dict[str, dict[str, Any]] = {
        "link": {"links": [{"leaf": [0, 0], "spine": [0, 1]}]}, "spine": {"spines": [[0, 1]]},
        "leaf": {"leaves": [[0, 0]]}, "server": {"servers": [[0, 0, 0]]},
    }  # fmt: skip
    for kind, parts in failed.items():
        yield instance(f"d3-n2l4m3-{kind}", f"{COMMAND} instances: a failed {kind}", failed=parts, **job)
    source = f"{COMMAND} instances: the whole machine with a failed spine"
    yield instance("d4-n4l5m4-spine", source, d=4, block=block(4, 5, 4), failed={"spines": [[0, 1]]}, routes="detour")
    source = "the whole machine of 36-port switches in the MLFM paper, 6156 servers"
    yield instance("d18-n18l19m18", source, d=18, block=block(18, 19, 18))


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


def failures() -> pd.DataFrame:
    """Solve every single failure of the (2, 4, 3) job, keep the records, return the table."""
    rows = []
    for kind, part, failed in single_failures():
        source, name = f"{COMMAND} failures", f"d3-n2l4m3-{kind}-{part}"
        made = instance(name, source, d=3, block=block(2, 4, 3), failed=failed, routes="detour")
        rows.append({"failed": kind, "part": part.replace("_", " to ")} | _solved(made, "single-failures"))
        print(rows[-1])
    return pd.DataFrame(rows)


def blocks() -> pd.DataFrame:
    """Solve every block with m > l-1 on d <= 4, by minimal routes and with detours; as :func:`failures`."""
    rows = []
    for d in range(1, 5):
        for n, columns, m in np.ndindex(d, d + 1, d):
            for routes in ("minimal", "detour") if m + 1 > columns else ():
                name, source = f"d{d}-n{n + 1}l{columns + 1}m{m + 1}-{routes}", f"{COMMAND} blocks"
                made = instance(name, source, d=d, block=block(n + 1, columns + 1, m + 1), routes=routes)
                sizes = {"d": d, "n": n + 1, "l": columns + 1, "m": m + 1, "routes": routes}
                rows.append(sizes | _solved(made, "blocks"))
                print(rows[-1])
    return pd.DataFrame(rows)


def _solved(made: MLFMInstance, folder: str) -> dict[str, Any]:
    """Write the instance, solve it by ``cpsat`` and keep the record; what the tables say about it."""
    path = FOLDER / folder / "instances" / f"{made.name}.instance"  # records alone end in .json here
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made.to_json())
    record = synth.solve(synth.read(path), "cpsat", time_limit=120.0, results=FOLDER / folder)
    facts = record["verified"]["facts"]
    return {
        "servers": made.ranks, "phases": record.value, "bound": record.bound,
        "gap": records.gap(record.value, record.bound), "ended": record["termination"], "verified": record.ok,
        "two-spine transfers": facts.get("two_spine_transfers"), "share of bandwidth": facts.get("share_of_bandwidth"),
        "seconds": round(record["seconds"]["build"] + record["seconds"]["solve"], 2), "bound by": record["bound_proof"],
    }  # fmt: skip


def throughputs() -> pd.DataFrame:
    """Throughput in MiB/s per server of the published sizes' records, at 16, 64 and 256 MiB."""
    rows = []
    for n, columns, m in BLOCKS:
        for method in ("closed_form", "cpsat-cpsat", "shift"):
            record = records.read(FOLDER / f"d3-n{n}l{columns}m{m}" / f"{method}.json")
            found = find_instance(record)
            assert isinstance(found, MLFMInstance)
            solution = MLFMFamily().unpack(found, record.packed or {})
            for size in (16, 64, 256):
                sized = found.model_copy(update={"message_bytes": size * 2.0**20})
                facts = check_phases(sized, solution).facts
                job = f"{n * columns * m} servers ({n},{columns},{m})"
                throughput = round(facts["throughput_bytes_per_s"] / 2**20, 1)
                load = facts["mean_worst_link_load"]
                named = {"job": job, "method": method.split("-")[0], "MiB": size}
                rows.append(named | {"MiB/s": throughput, "mean worst load": load})
    return pd.DataFrame(rows)


def draw_figure3(table: pd.DataFrame, path: Path) -> None:
    """One panel per job: bars for ours and shift at every message size, a line at the link's bandwidth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    jobs = list(dict.fromkeys(table["job"]))
    labels = {"closed_form": "published rule", "cpsat": "ours (cpsat)", "shift": "shift"}
    for axes, job in zip(figure.subplots(1, len(jobs), sharey=True), jobs, strict=True):
        mine = table[table["job"] == job]
        for place, (method, label) in enumerate(labels.items()):
            values = mine[mine["method"] == method]["MiB/s"].to_numpy()
            axes.bar(np.arange(len(values)) + 0.27 * (place - 1), values, width=0.25, label=label)
        axes.axhline(3770, color="black", linestyle="--", linewidth=1, label="optimal: link bandwidth")
        axes.set_xticks(range(3), ["16", "64", "256"])
        axes.set_xlabel("MiB to each server")
        load = float(mine[mine["method"] == "shift"]["mean worst load"].iloc[0])
        axes.set_title(f"{job}\nshift's mean worst load {load:.3g}", fontsize=10)
    figure.axes[0].set_ylabel("throughput per server, MiB/s")
    figure.axes[0].set_ylim(0, 4700)
    figure.axes[0].legend(fontsize=8, ncols=2, loc="upper center")
    figure.suptitle(
        "All-to-all throughput by replay, 3770 MiB/s links (bandwidth only; the paper's figure 3 is measured)"
    )
    figure.savefig(path, dpi=110)


def gaps() -> pd.DataFrame:
    """Every published record, with the best bound of its instance."""
    found = [records.read(path) for path in sorted(FOLDER.glob("*/*.json"))]
    best: dict[str, float] = {}
    for record in found:
        if record.bound is not None and record.ok:
            best[record["instance"]] = max(best.get(record["instance"], 0.0), record.bound)
    rows = []
    for record in found:
        if record["kind"] == "bound":
            continue
        facts, bound = record["verified"]["facts"], best.get(record["instance"])
        rows.append(
            {
                "instance": record["instance"], "servers": find_instance(record).ranks,  # type: ignore[attr-defined]
                "method": record["method"], "solver": record["solver"], "value": record.value, "bound": bound,
                "gap": records.gap(record.value, bound), "phases": facts.get("phases"),
                "mean worst load": facts.get("mean_worst_link_load"), "ended": record["termination"],
                "seconds": round(record["seconds"]["build"] + record["seconds"]["solve"], 2),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> int:
    """Run the parts named; 2 when a name is unknown."""
    known = ("instances", "failures", "blocks", "figure3", "gaps")
    if not arguments or not set(arguments) <= set(known):
        print(f"usage: {COMMAND} {' | '.join(known)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part in arguments:
        match part:
            case "instances":
                for made in shipped():
                    Path("instances/mlfm").mkdir(parents=True, exist_ok=True)
                    Path(f"instances/mlfm/{made.name}.json").write_text(made.to_json())
            case "failures":
                failures().to_csv(FOLDER / "single-failures.csv", index=False)
            case "blocks":
                blocks().to_csv(FOLDER / "blocks.csv", index=False)
            case "figure3":
                table = throughputs()
                table.to_csv(FOLDER / "figure3.csv", index=False)
                draw_figure3(table, FOLDER / "figure3.png")
            case "gaps":
                gaps().to_csv(FOLDER / "gaps.csv", index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
