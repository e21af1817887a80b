"""The README says what the code does: its table is that of the published records, which pass the check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import synth
from synth import record as records
from synth.record import gap

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"
COLUMNS = ("xtree", "mirror_xtree", "tacos", "pull", "symmetric", "ilp-highs")
HEADER = (
    "| instance | bound | published greedy | tacos | `pull` | `symmetric` | `ilp` (HiGHS) | gap of the best |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|\n"
)


def published_table(family: str = "xtree") -> str:
    """One line per published instance: values per method, the best bound, and the gap between best value and bound."""
    lines = []
    for folder in sorted((PUBLISHED / family).iterdir(), key=_natural):
        held = {path.stem: records.read(path) for path in folder.glob("*.json")}
        bound = max(record.bound for record in held.values() if record.bound is not None)
        value = {name: held[name].value for name in COLUMNS if name in held}
        best = min(v for v in (record.value for record in held.values()) if v is not None)
        shown = {name: "–" if v is None else f"{v:g}" for name, v in value.items()}
        greedy = shown.get("xtree", "–") if shown.get("xtree", "–") != "–" else shown.get("mirror_xtree", "–")
        left = gap(best, bound)
        cells = [folder.name, f"{bound:g}", greedy, *(shown.get(name, "–") for name in COLUMNS[2:])]
        lines.append("| " + " | ".join([*cells, "0" if left == 0 else f"{100 * left:.1f} %"]) + " |\n")
    return HEADER + "".join(lines)


def _natural(path: Path) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def readme() -> str:
    return (ROOT / "README.md").read_text()


def test_the_table_is_that_of_the_published_records():
    block = readme().split("<!-- published: xtree -->\n")[1].split("<!-- end -->")[0]
    assert block.strip() == published_table().strip()


def test_every_published_record_passes_the_check():
    files = sorted(PUBLISHED.rglob("*.json"))
    assert files
    for path in files:
        verdict = synth.check(path)
        assert verdict.ok, (path, verdict.faults)


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        ("equimesh-2x3-c4", 5), ("equimesh-3x3-c4", 8), ("equimesh-4x4-c4", 15), ("equimesh-5x5-c4", 24),
        ("equimesh-8x8-c4", 63), ("equimesh-5x11-c4", 54), ("mesh-8x8-c4", 126), ("torus-8x8-c4", 63),
        ("equimesh-3x3-c2", 4), ("equimesh-4x4-c1", 5), ("equimesh-5x5-c1", 7), ("equimesh-5x5-c2", 12),
        ("equimesh-5x11-c1", 14), ("equimesh-8x8-c1", 17), ("equimesh-5x11-c2", 27), ("torus-4x16-c1", 16),
    ],
)  # fmt: skip
def test_settled_instances_have_a_record_with_gap_0(instance, value):
    held = [records.read(path) for path in (PUBLISHED / "xtree" / instance).glob("*.json")]
    assert min(record.value for record in held if record.value is not None) == value
    assert max(record.bound for record in held if record.bound is not None) == value


def test_numbers_in_prose_are_those_of_the_records():
    """Each settled instance that the text names, with its timesteps."""
    text = re.sub(r"\s+", " ", readme())
    assert "C = 1 takes 5 timesteps at 4×4, 7 at 5×5 and 17 at 8×8, where the receive bounds are 4, 6 and 16" in text
    for side, value, receive in ((4, 5, 4), (5, 7, 6), (8, 17, 16)):
        folder = PUBLISHED / "xtree" / f"equimesh-{side}x{side}-c1"
        assert receive == -(-(side * side - 1) // 4)
        assert records.read(folder / "bound.json").bound == value
        assert records.read(folder / "pull.json").value == value
    assert "5×11 with C = 1 takes 14: HiGHS finds" in text
    for name in ("3x3-c2", "4x4-c1", "5x5-c1", "5x5-c2", "5x11-c1"):
        alone = records.read(PUBLISHED / "alone" / "xtree" / f"equimesh-{name}" / "ilp-highs.json")
        assert (alone["termination"], alone["options"]["method"]["warm_start"]) == ("optimal", False)
    for solver in ("ilp-highs", "ilp-scip", "ilp-gurobi", "cpsat-cpsat"):
        refuted = records.read(PUBLISHED / "four-steps" / "xtree" / "equimesh-2x3-c4" / f"{solver}.json")
        assert (refuted["termination"], refuted["options"]["method"]["horizon"]) == ("infeasible", 4)
    kautz = PUBLISHED / "xtree" / "kautz-9x2-c1"
    assert records.read(kautz / "bound.json").bound < records.read(kautz / "relaxation-highs.json").bound


def test_paths_named_in_the_readme_exist():
    for path in re.findall(
        r"\]\(\s*([\w./-]+)\)|`((?:instances|results/published|tests|models|synth)/[\w./-]*)`", readme()
    ):
        assert (ROOT / (path[0] or path[1])).exists(), path


if __name__ == "__main__":  # prints the table for the README
    print(published_table())
