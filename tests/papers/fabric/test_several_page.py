"""What the page `several` says is what its records say, and no bound lies above a schedule."""

from __future__ import annotations

import pytest
from published import PUBLISHED, ROOT, held_for, whole

import synth
from synth.instance import read
from synth.records.record import Record
from synth.text.quantities import percent, shown
from synth_models.fabric.instance import FabricInstance

SHIPPED = sorted((ROOT / "instances" / "fabric").glob("*several*.json"))


def by_instance() -> dict[str, dict[str, Record]]:
    held = {name: records for name, records in held_for("fabric").items() if "several" in name}
    return {name: {str(one["method"]): one for one in records.values()} for name, records in held.items()}


def rows() -> dict[str, dict[str, str]]:
    """The page's table by instance."""
    text = (PUBLISHED / "several.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {line[0].strip("`"): dict(zip(lines[0], line, strict=True)) for line in lines[2:]}


def test_every_shipped_instance_of_several_collectives_is_there() -> None:
    assert sorted(by_instance()) == sorted(file.stem for file in SHIPPED)
    for file in SHIPPED:
        instance = read(file)
        assert isinstance(instance, FabricInstance)
        assert instance.collectives is not None


@pytest.mark.parametrize("name", sorted(file.stem for file in SHIPPED))
def test_the_table_has_the_best_of_the_records(name: str) -> None:
    """And what libraries do is no quicker than the best of all together."""
    records = by_instance()[name]
    values = {method: record.value for method, record in records.items() if record.value is not None}
    best, bound = min(values.values()), max(record.bound or 0.0 for record in records.values())
    assert 0 < bound <= best
    assert all(record.grade == "certified" for record in records.values() if record.bound is not None)
    row = rows()[name]
    assert row["together"] == shown(best, "s")
    assert row["one after the other"] == shown(values["one_after_another"], "s")
    assert row["gap"] == percent(1 - bound / best)
    assert values[row["by"].partition(" of ")[0]] == best


@pytest.mark.long
def test_the_records_pass_the_check() -> None:
    for record in (one for records in by_instance().values() for one in records.values()):
        assert synth.check(whole(record)).ok, record.path
