"""Which way the rings of an EquiMesh turn: section III-B leaves the direction of each edge free. It decides how many
timesteps an allgather of one chunk takes; every choice is settled, with bounds that the check derives again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pandas as pd

from synth.making import make
from synth.network.builders import RING_DIRECTIONS
from synth.reproduction.collect import Reproduction
from synth_models.xtree.family import FAMILY
from synth_models.xtree.instance import XTreeInstance

PART = "directions"
SIDES, QUICK = (4, 6), (4,)  # square meshes; all sixteen choices of each
LARGE, ALIKE = 8, ("eeee", "oooo")  # of this one, all rings the same way
TIME_LIMIT = 300.0
EDGES = ("top", "bottom", "left", "right")
LETTER = dict(zip(RING_DIRECTIONS, "eo", strict=True))


def choices(side: int, collective: str = "allgather") -> Iterator[XTreeInstance]:
    """The sixteen choices on one square, one chunk a node; their names end in a letter an edge (e: even positions
    upwards), in the order of :data:`EDGES`."""
    for directions in product(RING_DIRECTIONS, repeat=4):
        letters = "".join(LETTER[direction] for direction in directions)
        name = f"equimesh-{side}x{side}-c1-{collective.replace('_', '')}-{letters}"
        words = {"network": "equimesh", "rows": side, "cols": side, "chunks": 1, "collective": collective}
        made = make(FAMILY, {**words, "rings": ",".join(directions), "name": name})
        assert isinstance(made, XTreeInstance)
        yield made


def settled(page: Reproduction) -> None:
    """A row for each size and number of timesteps: how many choices, which, and whether each is proven."""
    rows = []
    for side, collective in _asked(page.quick):
        found: dict[tuple[float | None, bool], list[str]] = {}
        for instance in choices(side, collective):
            if side == LARGE and not instance.name.endswith(ALIKE):
                continue
            kept = page.keep(instance, PART)
            [(_, record)] = page.solve([kept], ["pull"], part=PART)
            if record.gap != 0:
                [(_, record)] = page.solve([kept], ["ilp"], time_limit=TIME_LIMIT, part=PART)
            found.setdefault((record.value, record.gap == 0), []).append(instance.name.rsplit("-", 1)[-1])
        for (value, proven), names in sorted(found.items(), key=lambda item: (item[0][0] or 0.0, item[1])):
            rows.append((f"{side}x{side}, {collective}", value, proven, len(names), ", ".join(names)))
    columns = ["EquiMesh, C = 1", "timesteps", "proven", "choices", "directions (top, bottom, left, right)"]
    page.table(
        "Ring directions: sixteen choices, on 8x8 those of all rings alike",
        pd.DataFrame(rows, columns=columns),
        file="directions",
    )
    page.note(
        "Ring directions: `e` visits the even positions of an edge upwards, then the odd ones downwards; `o` the odd "
        "ones upwards. Reversing every link turns an allgather into a reduce-scatter and each ring the other way."
    )


def _asked(quick: bool) -> list[tuple[int, str]]:
    """Sides and collectives."""
    sides = QUICK if quick else (*SIDES, LARGE)
    return [*((side, "allgather") for side in sides), (min(SIDES), "reduce_scatter")]
