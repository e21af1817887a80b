"""Tables, texts and drawings, and records that check again."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.optree.cases import SHIPPED, options, ring

import synth
from synth.errors import InputError
from synth.method import load
from synth_models.optree import FAMILY
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.references.optree import schedule
from synth_models.optree.references.relay import relay
from synth_models.optree.solution import StepCount


def test_table_has_the_stable_columns() -> None:
    table = load(FAMILY.table)(ring(4, 1), relay(ring(4, 1), options()))
    assert list(table.columns) == ["step", "src", "dst", "direction", "wavelength", "origin"]
    assert len(table) == 12
    assert table["step"].is_monotonic_increasing


def test_a_table_can_be_replayed_with_ten_lines() -> None:
    """Independent replay of the flat table: who holds what, and no wavelength of a link twice."""
    table = load(FAMILY.table)(ring(16, 2), schedule(16, 2, (4, 4)))
    holds = {(v, v) for v in range(16)}
    for _, rows in table.groupby("step"):
        used, arrived = set(), set()
        for row in rows.itertuples():
            assert (row.src, row.origin) in holds
            v = row.src
            while v != row.dst:
                u, v = v, (v + 1 if row.direction == 0 else v - 1) % 16
                assert (u, v, row.wavelength) not in used
                used.add((u, v, row.wavelength))
            arrived.add((row.dst, row.origin))
        holds |= arrived
    assert len(holds) == 256


def test_counts_have_no_table() -> None:
    with pytest.raises(InputError, match="ring counts steps and has no circuits"):
        load(FAMILY.table)(ring(4, 1), StepCount("ring"))


def test_texts() -> None:
    text = load(FAMILY.describe)(ring(4, 1), relay(ring(4, 1), options()))
    assert text.startswith("step   1 (8 circuits up to 1 hops, 100 % in use)")
    assert (
        load(FAMILY.describe)(ring(16, 2), StepCount("stages", (4, 4)))
        == "stages of radix 4, 4; counts steps, no circuits"
    )
    assert "1 more steps" in load(FAMILY.describe)(ring(62, 1), schedule(62, 9, (62,)).of(*_sixty_one_steps()))


def _sixty_one_steps() -> list[list[int]]:
    return [list(range(1, 62)), [0] * 61, list(range(1, 62)), [0] * 61, [0] * 61, [0] * 61]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("nodes", [8, 512])
def test_plots(nodes: int, tmp_path: Path) -> None:
    instance = ring(nodes, 2 if nodes == 8 else 64)
    load(FAMILY.plot)(instance, relay(instance, options()), "relay").savefig(tmp_path / "x.png")
    load(FAMILY.plot)(instance, StepCount("stages", (nodes,)), "plan").savefig(tmp_path / "y.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_instances_read(file: Path) -> None:
    instance = synth.read(file)
    assert isinstance(instance, OpTreeInstance)
    assert instance.name == file.stem
    assert instance.budget_fault is None


@pytest.mark.long
@pytest.mark.parametrize("method", ["relay", "bound", "stages"])
def test_records_check_again(method: str, tmp_path: Path) -> None:
    instance = synth.read(next(file for file in SHIPPED if file.stem == "ring-512-w64"))
    record = synth.solve(instance, method, results=tmp_path)
    assert record.path is not None
    verdict = synth.check(record.path, instance)
    assert verdict.ok, verdict.faults
