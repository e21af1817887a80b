"""Section VI-B, OpTree beyond the ring: tori and meshes, rows then columns, beside ``relay`` and the bounds; and which
is better at the same number of nodes and wavelengths, a ring or a torus.

The paper prints no number here, so there is nothing to compare with but our own rings.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.views.figure_style import legend_below, looks, plain_log
from synth_models.optree.instance import Grid, OpTreeInstance

PRINTED = printed.read(__file__)
PART = "grids"  # records of networks that are not shipped
SHIPPED = (
    "torus-3x3-w1", "torus-4x4-w1", "torus-4x4-w2", "torus-8x8-w4", "torus-4x4x4-w4", "mesh-9-w2", "mesh-2x3-w1",
    "mesh-3x3-w1", "mesh-4x4-w2", "mesh-8x8-w4", "mesh-2x2x2-w1", "grid-4x8-w2",
)  # fmt: skip
SQUARES = {16: (4, 4), 64: (8, 8), 256: (16, 16), 1024: (32, 32)}
CUBES = {16: (2, 2, 4), 64: (4, 4, 4), 256: (4, 8, 8), 1024: (8, 8, 16)}
BY_NODES = [(nodes, 16) for nodes in SQUARES]
BY_WAVELENGTHS = [(1024, w) for w in (4, 16, 64)]
AXES = ((BY_NODES, "N", "nodes, w = 16"), (BY_WAVELENGTHS, "w", "w, 1024 nodes"))
METHODS = ("optree", "relay", "bound")
SHAPES = ("ring", "ring, 2w", "torus", "3-D torus", "mesh")
TIME_LIMIT = 120.0  # for relay on rings of 1024 nodes; it ends by itself well before


def reproduce(page: Reproduction) -> None:
    """Tables and one figure; in the short form tiny grids only."""
    steps = GridSteps(page)
    _law(page, steps)
    _shipped(page)
    if page.quick:
        page.skip("ring or torus at up to 1024 nodes (--quick)")
        return
    _ring_or_torus(page, steps)


class GridSteps:
    """Verified steps by method and network, solved when first asked for."""

    def __init__(self, page: Reproduction) -> None:
        self.page = page

    def __call__(self, method: str, shape: str, nodes: int, wavelengths: int) -> int:
        """Steps of OpTree (``optree``, on a ring its counted ``stages``), of ``relay``, or the proven ``bound``."""
        if method == "optree" and shape.startswith("ring"):
            method = "stages"
        return self.of(method, network(shape, nodes, wavelengths))

    def of(self, method: str, instance: OpTreeInstance, sharing: bool = True) -> int:
        """The same of any network; ``sharing`` as in ``optree``'s option."""
        asked, part = self.page.placed(instance, PART)
        methods: dict[str, dict[str, str]] = {method: {} if sharing else {"sharing": "off"}}
        [(_, record)] = self.page.solve([asked], methods, time_limit=TIME_LIMIT, part=part)
        value = record.bound if method == "bound" else record.value
        assert value is not None
        return round(value)


def network(shape: str, nodes: int, wavelengths: int) -> OpTreeInstance:
    """One of ``SHAPES`` with so many nodes; ``ring, 2w`` has twice the wavelengths, as many as a torus has in all."""
    if shape.startswith("ring"):
        return _made("ring", (nodes,), 2 * wavelengths if shape == "ring, 2w" else wavelengths)
    sides = (CUBES if shape == "3-D torus" else SQUARES)[nodes]
    return _made("mesh" if shape == "mesh" else "torus", sides, wavelengths)


def _made(shape: str, sides: tuple[int, ...], wavelengths: int) -> OpTreeInstance:
    nodes, kind = 1, "line" if shape == "mesh" else "ring"
    for side in sides:
        nodes *= side
    grid = Grid.model_validate({"sides": sides, "kinds": (kind,) * len(sides)}) if shape != "ring" else None
    name = f"{shape}-{'x'.join(map(str, sides))}-w{wavelengths}"
    return OpTreeInstance(name=name, source="synth reproduce optree", nodes=nodes, wavelengths=wavelengths, grid=grid)


def _law(page: Reproduction, steps: GridSteps) -> None:
    """Rows then columns on an n x n torus against the ring of n nodes."""
    rows = []
    cases = [(3, 1), (4, 2), (8, 4)] if page.quick else [(3, 1), (4, 2), (8, 4), (16, 16), (32, 16), (32, 64)]
    for side, wavelengths in cases:
        torus = _made("torus", (side, side), wavelengths)
        ring = steps.of("stages", _made("ring", (side,), wavelengths))
        shared, apart = steps.of("optree", torus), steps.of("optree", torus, sharing=False)
        assert apart == (side + 1) * ring
        rows.append((f"{side} x {side}", wavelengths, ring, apart, ring, shared - ring, shared, *_best(steps, torus)))
    heads = ["torus", "w", "ring of n", "one by one: (n + 1) ring", "rows", "columns, shared", "sum", "relay", "bound"]
    page.table("Rows, then columns (section VI-B): steps", pd.DataFrame(rows, columns=heads))
    page.note(
        "Section VI-B in numbers: on an n x n torus rows-then-columns takes the ring's count for n nodes, then that "
        "for n nodes with n items each. One item after the other this is n + 1 times the ring's count; `optree` lets "
        "the items share wavelengths (a stage of W wavelengths takes ceil(n W / w) steps). Its radices are chosen for "
        "n items, and it takes fewer steps wherever a stage leaves wavelengths idle."
    )


def _best(steps: GridSteps, instance: OpTreeInstance) -> tuple[int, int]:
    return steps.of("relay", instance), steps.of("bound", instance)


def _shipped(page: Reproduction) -> None:
    """The shipped tori and meshes: every method and the best bound."""
    names = SHIPPED[:3] if page.quick else SHIPPED
    rows: dict[str, dict[str, float | None]] = {}
    for name in names:
        instance = page.shipped("optree", name)
        assert isinstance(instance, OpTreeInstance)
        methods = ["bound", "optree", "relay"] + (["time_expanded"] if instance.nodes <= 16 else [])
        for _, record in page.solve([instance], methods, time_limit=20.0):
            row = rows.setdefault(name, {})
            row["bound"] = max(row.get("bound") or 0.0, record.bound or 0.0)
            if record["kind"] != "bound":
                row[record["method"]] = record.value
    columns = ["optree", "relay", "time_expanded", "bound"]
    table = pd.DataFrame([(name, *(rows[name].get(c) for c in columns)) for name in names], columns=["", *columns])
    page.table("Small tori and meshes: steps", table)
    exact = rows["torus-3x3-w1"]
    words = f"any schedule: {exact['time_expanded']:g}, by the program and by exhaustive search in the tests"
    page.compare(PRINTED["tori.torus-3x3"], exact["optree"], words)


def _ring_or_torus(page: Reproduction, steps: GridSteps) -> None:
    """Ring or torus at the same number of nodes and wavelengths: a table, the answer and the figure."""
    found = {
        (method, shape, nodes, w): steps(method, shape, nodes, w)
        for nodes, w in dict.fromkeys([*BY_NODES, *BY_WAVELENGTHS])
        for shape in SHAPES
        for method in METHODS
    }
    rows = [
        (nodes, w, method, *(found[method, shape, nodes, w] for shape in SHAPES))
        for nodes, w in dict.fromkeys([*BY_NODES, *BY_WAVELENGTHS])
        for method in METHODS
    ]
    table = pd.DataFrame(rows, columns=["N", "w", "method", *SHAPES])
    page.table("Ring or torus: steps", table, "ring-or-torus")
    for method in ("optree", "relay"):
        for shape in ("ring", "ring, 2w"):
            ratio = found[method, shape, 1024, 16] / found[method, "torus", 1024, 16]
            remark = f"{found[method, shape, 1024, 16]} steps against {found[method, 'torus', 1024, 16]}"
            page.compare(PRINTED[f"tori.{method}-{shape.replace(', ', '-')}"], ratio, remark)
    page.figure(
        draw(table),
        "ring-or-torus",
        "Ring or torus (section VI-B): OpTree, `relay` and the proven bound at the same number of nodes; `ring, 2w` "
        "has as many wavelengths on all its links together as the torus.",
    )


def draw(table: pd.DataFrame) -> Figure:
    """A row for nodes and one for wavelengths, a panel a method, a line a shape."""
    figure = Figure(figsize=(11, 6.6), layout="constrained")
    grid = figure.subplots(2, len(METHODS), sharey="row")
    for row, (cases, column, label) in zip(grid, AXES, strict=True):
        drawn = table[[pair in cases for pair in zip(table["N"], table["w"], strict=True)]]
        for axes, method in zip(row, METHODS, strict=True):
            shown = drawn[drawn["method"] == method].sort_values(column)
            for shape, look in looks(SHAPES).items():
                axes.plot(shown[column], shown[shape], label=shape, **look)
            axes.set(xscale="log", yscale="log", xlabel=label, title=method)
            axes.set_xticks(list(shown[column]), [str(tick) for tick in shown[column]], minor=False)
            axes.minorticks_off()
            plain_log(axes.yaxis)
        row[0].set_ylabel("steps")
    legend_below(figure, grid[0, 0].get_legend_handles_labels()[0], columns=5)
    return figure
