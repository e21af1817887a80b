"""Cubes of which a switch or a whole cube has failed: the best use of the rest."""

from __future__ import annotations

import pandas as pd

from synth.api import make
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent

PART = "failures"
LIMIT_S = 60.0
METHODS = ("bound", "torus", "twisted", "search")
PLANTS: dict[str, dict[str, object]] = {
    "2 cubes": {"cubes": 2},
    "2 cubes, a switch failed": {"cubes": 2, "failed_switches": "0"},
    "4 cubes": {"cubes": 4},
    "4 cubes, one failed": {"cubes": 4, "failed_cubes": "3"},
}
TITLE = "Cubes with a failure: the largest load"


def tables(page: Reproduction) -> str:
    """A row a failure: published and ours, the bound, the gap."""
    if page.quick:
        page.skip("failures of cubes: not in the short form")
        return ""
    rows = []
    for failure, keys in PLANTS.items():
        made = make("topology", **keys)
        instance = page.keep(made.model_copy(update={"name": failure.replace(",", "").replace(" ", "-")}), PART)
        found = {r["method"]: r for _, r in page.solve([instance], METHODS, time_limit=LIMIT_S, part=PART)}
        value = {name: record.value for name, record in found.items() if record.value is not None}
        bound = float(found["bound"].bound or 0)
        rows.append({"what": failure, **value, "bound": bound, "gap": percent(1 - bound / value["search"])})
    table = pd.DataFrame(rows)
    page.table(TITLE, table.round(4))
    page.note(
        "A failed switch joins nothing; of a failed cube the others are a plant of their own, and its links go. "
        f"Every method has {LIMIT_S:g} s, here on cores that other work shared: a longer search finds less."
    )
    whole, broken = (table.loc[table["what"] == what, "search"].item() for what in list(PLANTS)[:2])
    return f"With a failed switch the largest load of two cubes is {100 * (broken / whole - 1):.1f} % higher."
