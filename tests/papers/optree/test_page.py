"""What `models/optree.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
from published import PUBLISHED, held_for, prose, unlike_records, value_of

from synth.records import record as records
from synth_models.optree.check.counts import count_steps
from synth_models.optree.references.wrht_schedule import least_steps
from synth_papers.optree import schedules


def test_numbers_of_the_optree_paragraph():
    text = prose("optree")
    assert "OpTree's formula gives 70 steps; its best whole radices take 68 (`stages`). `relay` (ours) takes 19" in text
    methods = ("formula", "stages-highs", "relay")
    assert [value_of("optree", "ring-1024-w64", method) for method in methods] == [70, 68, 19]
    assert records.read(PUBLISHED / "optree" / "ring-1024-w64" / "bound.json").bound == 19
    assert "At 16 nodes and 2 wavelengths `time_expanded` takes 5 steps" in text
    assert "and proves them optimal. OpTree's worked example takes 12." in text
    exact = records.read(PUBLISHED / "optree" / "ring-16-w2" / "time_expanded-cpsat.json")
    assert (exact["termination"], exact.value, exact.bound) == ("optimal", 5, 5)
    assert value_of("optree", "ring-16-w2", "optree") == 12
    methods = ("formula", "wrht", "relay")
    assert [value_of("optree", "ring-4096-w64", method) for method in methods] == [340, 259, 63]
    assert records.read(PUBLISHED / "optree" / "ring-4096-w64" / "bound.json").bound == 63


def test_steps_by_method_are_those_of_the_records():
    ours = {"bound": ("bound",), "`relay`": ("relay",), "`time_expanded`": ("time_expanded-cpsat",)}
    published = {"OpTree's formula": ("formula",), "`optree` or `stages`": ("optree", "stages-highs")}
    assert unlike_records("optree", "rings", ours | published | {"WRHT's count": ("wrht",)}) == []
    assert unlike_records("optree", "grids", ours | {"rows, then columns (`optree`)": ("optree",)}) == []
    table = prose("optree").split("<!-- published: grids -->")[1]
    assert [name for name in held_for("optree") if f"| {name} " not in table and not name.startswith("ring")] == []


def test_where_relay_is_optimal_and_ring_or_torus():
    """Counts of rings are those of the map; the published table says which of ring and torus takes fewer steps."""
    cells = pd.read_csv(PUBLISHED / "optree" / "relay-map.csv")
    met = int((cells["relay"] == cells["bound"]).sum())
    assert f"on {met} of {len(cells)} rings of 8 to 4096 nodes" in prose("optree")
    table = pd.read_csv(PUBLISHED / "optree" / "ring-or-torus.csv").set_index(["N", "w", "method"])
    many = {(w, method): table.loc[(1024, w, method)] for w in (16, 64) for method in ("optree", "relay", "bound")}
    assert [many[16, method][shape] for method in ("optree", "relay", "bound") for shape in ("ring", "torus")] == [
        266, 132, 61, 18, 61, 17,
    ]  # fmt: skip
    assert [many[64, method][shape] for method in ("optree", "relay", "bound") for shape in ("ring", "torus")] == [
        68, 34, 19, 6, 19, 6,
    ]  # fmt: skip
    assert [many[16, method]["ring, 2w"] for method in ("optree", "relay")] == [135, 31]
    assert table.loc[(16, 16, "relay")][["ring, 2w", "torus"]].tolist() == [1, 2]


def test_wrht_and_one_path_of_the_optree_page():
    """What the page says of WRHT's routing by the replay, and of the rings where `one_path` has been tried."""
    text = prose("optree")
    assert schedules.wrht_steps(1024, 64)[:2] == (1041, 1025)
    assert [count_steps(*ring, "wrht", (1,)).steps for ring in ((1024, 64), (7, 1))] == [259, 7]
    assert least_steps(7, 1, 1) == 8
    assert "`one_path` meets the bound on $(96,48)$" in text
    assert value_of("optree", "ring-96-w48", "one_path-cpsat") == 3
    assert records.read(PUBLISHED / "optree" / "ring-96-w48" / "bound.json").bound == 3
