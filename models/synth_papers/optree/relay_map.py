"""Where ``relay`` is optimal on rings: its replayed steps against the certified bound over nodes and wavelengths.

Ours, not the paper's. Every cell is a schedule of ``relay`` replayed by the check and a bound that the check has
derived again from its certificate; both without a time limit, so the map does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from synth.options import RunOptions
from synth.reproduction.collect import Reproduction
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.certificates import check_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.leaps import leap_bound, leaps_suffice
from synth_models.optree.programs.one_path.method import decide
from synth_models.optree.references.relay import relay

NODES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
WAVELENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CLOSE = 1  # one step above the bound
PROGRAM_S = 120.0  # seconds for the program on a ring where relay takes more steps than the bound


@dataclass(frozen=True)
class Cell:
    """Steps of one ring: ``relay``'s, replayed, and the certified bound with its kind (``receive``, ``reach``)."""

    nodes: int
    wavelengths: int
    relay: int
    bound: int
    binding: str
    one_path: int | None = None  # steps of that program, replayed, where relay takes more than the bound

    @property
    def excess(self) -> int:
        """Steps above the bound; 0 is optimal."""
        return self.relay - self.bound

    @property
    def leap_bound(self) -> int:
        """``ceil((N-1) / (w+1))``, the closed bound proven in ``bounds/steps.py``."""
        return leap_bound(self.nodes, self.wavelengths)

    @property
    def closed(self) -> bool:
        """Whether the theorem of ``references/relay_graph.py`` says that ``relay`` takes ``leap_bound`` steps."""
        return leaps_suffice(self.nodes, self.wavelengths, self.nodes - 1)


def measure(nodes: int, wavelengths: int) -> Cell:
    """One cell. Raises ``RuntimeError`` naming the ring where the check finds a fault in the schedule or the bound."""
    ring, options = _ring(nodes, wavelengths), RunOptions(time_limit_s=None)
    verdict = check_solution(ring, relay(ring, options))
    bound, _, certificate = lower_bound(ring, options)
    faults = [*verdict.faults, *check_bound(ring, bound, certificate)]
    if faults or verdict.value is None:
        raise RuntimeError(f"{ring.name}: {faults}")
    value = round(verdict.value)
    other = _one_path(ring, bound) if value > bound else None
    return Cell(nodes, wavelengths, value, bound, str(certificate["binding"]), other)


def _ring(nodes: int, wavelengths: int) -> OpTreeInstance:
    name = f"ring-{nodes}-w{wavelengths}"
    return OpTreeInstance(name=name, source="synth reproduce optree", nodes=nodes, wavelengths=wavelengths)


def _one_path(ring: OpTreeInstance, steps: int) -> int | None:
    """So many steps if the program finds a schedule that the check accepts."""
    found = decide(ring, RunOptions(time_limit_s=PROGRAM_S), steps).solution
    value = None if found is None else check_solution(ring, found).value
    return None if value is None else round(value)


def reproduce(page: Reproduction) -> None:
    """The map as a figure, its cells as ``relay-map.csv`` and the counts in words; in the short form up to 32 nodes."""
    largest = 32 if page.quick else max(NODES)
    asked = [(n, w) for n in NODES for w in WAVELENGTHS if n <= largest]
    cells = [measure(n, w) for n, w in asked]
    page.table("Where relay is optimal", _table(cells), "relay-map", show=False)
    for cell in cells:
        if cell.excess:  # what was tried is kept, whether it closes the gap or not
            made, part = page.placed(_ring(cell.nodes, cell.wavelengths), "replayed")
            list(page.solve([made], ["bound", "relay", "one_path"], time_limit=PROGRAM_S, part=part))
    page.figure(_figure(cells, [n for n in NODES if n <= largest]), "relay-map", caption(cells))
    page.say(caption(cells))
    for text in remarks(cells):
        page.note(text)
        page.say(text)
    if page.quick:
        page.skip(f"the map of relay's steps beyond {largest} nodes (--quick)")


def _table(cells: list[Cell]) -> pd.DataFrame:
    columns = ["N", "w", "relay", "bound", "binding", "excess", "one_path"]
    rows = [(c.nodes, c.wavelengths, c.relay, c.bound, c.binding, c.excess, c.one_path) for c in cells]
    return pd.DataFrame(rows, columns=columns).astype({"one_path": "Int64"})


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """The map."""
    rows = pd.read_csv(folder / "relay-map.csv")
    asked = [rows[name] for name in ("N", "w", "relay", "bound", "binding")]
    cells = [Cell(*row) for row in zip(*(column.tolist() for column in asked), strict=True)]
    yield "relay-map", _figure(cells, list(NODES))


def caption(cells: list[Cell]) -> str:
    """What the figure shows, with the counts of optimal cells and of those within one step."""
    optimal, close = (sum(c.excess <= most for c in cells) for most in (0, CLOSE))
    above = [
        f"N = {c.nodes}, w = {c.wavelengths} ({c.relay} against {c.bound}"
        + (")" if c.one_path is None else f", `one_path` takes {c.one_path})")
        for c in cells
        if c.excess
    ]
    return (
        f"Steps of `relay` above the certified bound on rings: of {len(cells)} cells {optimal} are optimal and {close} "
        f"within one step of the bound. Above it: {'; '.join(above) or 'none'}. Every schedule is replayed and every "
        "bound derived again by the check. Cells carry `relay`'s steps; the black line encloses those where the count "
        "is the theorem's closed form."
    )


def remarks(cells: list[Cell]) -> list[str]:
    """The proven closed bound and the proven closed form, each with the cells it was compared on."""
    equal = sum(c.leap_bound == c.bound for c in cells)
    closed = [c for c in cells if c.closed]
    kept = sum(c.relay == c.leap_bound == c.bound for c in closed)
    others = [c for c in cells if not c.closed]
    more = max((c.bound - c.leap_bound for c in others), default=0)
    return [
        "Theorem 1: every schedule on a ring takes at least T = ceil((N-1)/(w+1)) steps (proof in "
        f"`synth_models.optree.bounds.steps`). It is the certified bound in {equal} of the map's {len(cells)} cells.",
        "Theorem 2: where 2T >= w - 1, T steps are enough and `relay` takes them (w = 2: unless 6 divides N - 1; "
        "proofs in `synth_models.optree.references.relay_graph` and `relay_two`). So there the optimum is known in "
        f"closed form: {len(closed)} of the map's {len(cells)} cells, and `relay`'s replayed count is T in {kept} of "
        "these. "
        "Elsewhere, on rings with few steps, T is not the optimum in general: the certified bound is up to "
        f"{more} steps above it, and no closed form is claimed; `relay` meets the bound in "
        f"{sum(not c.excess for c in others)} of these {len(others)} cells.",
    ]


def _figure(cells: list[Cell], nodes: list[int]) -> Figure:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    waves = sorted({c.wavelengths for c in cells})
    colours = ListedColormap(["#d9ead3", "#ffe599", "#f6b26b", "#cc4125"])
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots()
    closed = {(nodes.index(c.nodes), waves.index(c.wavelengths)): c.closed for c in cells}
    grid = [[float("nan")] * len(nodes) for _ in waves]
    for c in cells:
        x, y = nodes.index(c.nodes), waves.index(c.wavelengths)
        grid[y][x] = c.excess
        axes.text(x, y, str(c.relay), ha="center", va="center", fontsize=7)
    norm = BoundaryNorm([-0.5, 0.5, 1.5, 2.5, 1e6], 4)
    mesh = axes.imshow(grid, origin="lower", aspect="auto", cmap=colours, norm=norm)
    for c in cells:  # the border of the theorem's cells
        x, y = nodes.index(c.nodes), waves.index(c.wavelengths)
        for other, line in (
            ((x - 1, y), ([x - 0.5] * 2, [y - 0.5, y + 0.5])),
            ((x, y - 1), ([x - 0.5, x + 0.5], [y - 0.5] * 2)),
        ):
            if closed.get(other, c.closed) != c.closed:
                axes.plot(*line, color="black", linewidth=1.5)
    axes.set_xticks(range(len(nodes)), [str(n) for n in nodes], rotation=45)
    axes.set_yticks(range(len(waves)), [str(w) for w in waves])
    axes.set(xlabel="nodes N", ylabel="wavelengths w")
    axes.grid(visible=False)
    bar = figure.colorbar(mesh, ax=axes, ticks=[0, 1, 2, 5e5], spacing="uniform", shrink=0.6)
    bar.set_ticklabels(["optimal", "1 step above", "2 steps above", "3 or more"])
    return figure
