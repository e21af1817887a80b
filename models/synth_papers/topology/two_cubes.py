"""Two TPU v4 cubes: the torus, the twisted torus and ours beside what is printed of them and of TONS."""

from __future__ import annotations

import pandas as pd

from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent

PRINTED = printed.read(__file__)
LIMIT_S = 60.0
METHODS = ("bound", "torus", "twisted", "search")


def tables(page: Reproduction) -> str:
    """The loads of an all-to-all beside the printed ones."""
    instance = page.shipped("topology", "cubes-2-4x4x4")
    records = {record["method"]: record for _, record in page.solve([instance], METHODS, time_limit=LIMIT_S)}
    value = {name: record.value for name, record in records.items() if record.value is not None}
    bound = float(records["bound"].bound or 0)
    for key, name in (("torus", "torus"), ("twisted", "twisted")):
        page.beside(PRINTED[f"load.{key}"], "ours", value[name])
    page.beside(PRINTED["load.tons"], "ours, by search", value["search"])
    rows = [(name, load, percent(1 - bound / load)) for name, load in value.items()]
    page.table("Two cubes of 4x4x4: the largest load of an arc", pd.DataFrame(rows, columns=["by", "load", "gap"]))
    best = min(value.values())
    return f"Of two TPU v4 cubes ours loads an arc with {best:.4f}, and no topology with less than {bound:.4f}."
