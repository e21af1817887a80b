"""4 to 64 cubes of 4x4x4, up to 4,096 nodes: torus, twisted torus and ours, the bound and the gap."""

from __future__ import annotations

import pandas as pd

from synth.api import make
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent

PART = "cubes"
LIMIT_S = 120.0
METHODS = ("bound", "torus", "twisted", "search")
CUBES = (4, 8, 16, 64)
TITLE = "The largest load of an all-to-all on cubes of 4x4x4"


def tables(page: Reproduction) -> str:
    """A row a number of cubes."""
    rows = []
    for cubes in CUBES[:1] if page.quick else CUBES:
        instance, part = page.placed(make("topology", cubes=cubes), PART)
        found = {r["method"]: r for _, r in page.solve([instance], METHODS, time_limit=LIMIT_S, part=part)}
        value = {name: float(record.value) for name, record in found.items() if record.value is not None}
        bound, published = float(found["bound"].bound or 0), min(value["torus"], value.get("twisted", value["torus"]))
        rows.append(
            {
                "cubes": cubes,
                "nodes": 64 * cubes,
                **{name: round(load, 3) for name, load in value.items()},
                "bound": round(bound, 3),
                "gap": percent(1 - bound / value["search"]),
                "below the best torus": percent(1 - value["search"] / published),
                "seconds": round(sum(found["search"]["seconds"].values()), 1),
            }
        )
    table = pd.DataFrame(rows)
    page.table(TITLE, table)
    page.note(
        "Where cubes are many the bound counts a circuit as longer than a link inside a cube: no routing can give all "
        "units the circuits that shortest paths ask for."
    )
    last = table.iloc[-1]
    return (
        f"Of {last['cubes']} cubes ours loads an arc with {last['search']:,.0f}, {last['below the best torus']} less "
        f"than the best torus and {last['gap']} from what no topology can beat."
    )
