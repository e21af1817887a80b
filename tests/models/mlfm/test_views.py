"""Storing, the flat table, the text and the drawings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.mlfm.same_transfers import same_transfers

import synth
from synth.method import load
from synth.records import record as records
from synth_models.mlfm import FAMILY
from synth_models.mlfm.solution import PhaseTable
from synth_papers.mlfm.problems import main

NAMES = [
    ("d3-n2l4m3", "closed_form"),
    ("d3-n2l4m3", "shift"),
    ("d3-n2l4m3-spine", "cpsat"),
    ("d4-fragment-36", "cpsat"),
]


@cache
def solved(name: str, method: str, **options: Any) -> tuple[Any, Any, Any]:
    instance = synth.read(f"instances/mlfm/{name}.json")
    record = synth.solve(instance, method, **options)
    return instance, record, load(FAMILY.unpack)(instance, record.packed or {})  # type: ignore[arg-type]


@pytest.mark.long(after=3)
@pytest.mark.parametrize(("name", "method"), NAMES)
def test_stored_solutions_come_back_and_check(name: str, method: str, tmp_path: Path) -> None:
    instance, record, solution = solved(name, method, results=tmp_path)
    again = records.read(record.path)
    assert synth.check(again).ok
    assert same_transfers(load(FAMILY.unpack)(instance, again.packed or {}), solution)


@pytest.mark.parametrize(("name", "method"), NAMES)
def test_anybody_can_replay_the_table(name: str, method: str) -> None:
    """Ten lines that know only what the columns mean: every pair once, spines join their leaves' columns, loads."""
    instance, record, solution = solved(name, method)
    table = load(FAMILY.table)(instance, solution)
    assert list(table.columns) == ["phase", "src", "dst", "via"]
    assert len(set(zip(table["src"], table["dst"], strict=True))) == len(table) == instance.ranks**2
    loads: dict[int, dict[Any, int]] = {}
    for phase, src, dst, via in table.itertuples(index=False):
        stops = via.split()
        assert (stops[0], stops[-1]) == (src.rsplit(".", 1)[0], dst.rsplit(".", 1)[0])
        for tail, spine, head in zip(stops[0::2], stops[1::2], stops[2::2], strict=False):
            assert {tail.split(".")[1], head.split(".")[1]} <= set(spine.split("-"))
            for link in ((tail, spine), (spine, head)):
                loads.setdefault(phase, {})[link] = loads.setdefault(phase, {}).get(link, 0) + 1
    phases = range(int(table["phase"].max()) + 1)
    assert record.value == sum(max(loads.get(p, {}).values(), default=1) for p in phases)


def test_the_table_of_idle_ranks_and_detours_by_hand() -> None:
    from synth_models.mlfm.solution import via

    instance = synth.read("instances/mlfm/d3-n2l4m3-link.json")
    # leaf 0.0 over spine 0-2 (number 1), leaf 2.2 (2 * 4 + 2 = 10) and spine 1-2 (number 3) to leaf 1.1 (1 * 4 + 1 = 5)
    assert via(instance, 0, 1, 10, 3, 5) == "0.0 0-2 2.2 1-2 1.1"  # type: ignore[arg-type]
    assert via(instance, 0, 0, -1, -1, 5) == "0.0 0-1 1.1"  # type: ignore[arg-type]
    assert via(instance, 0, -1, -1, -1, 0) == "0.0"  # type: ignore[arg-type]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("name", "method"), NAMES)
def test_description_and_drawing(name: str, method: str, tmp_path: Path) -> None:
    instance, _, solution = solved(name, method)
    text = load(FAMILY.describe)(instance, solution)
    assert f"{instance.ranks} servers on MLFM({instance.d})" in text
    assert "phase   0 (" in text
    load(FAMILY.plot)(instance, solution, name).savefig(tmp_path / "a.png", dpi=40)
    assert (tmp_path / "a.png").stat().st_size > 5000


@pytest.mark.slow
def test_views_of_the_whole_machine(tmp_path: Path) -> None:
    instance, record, solution = solved("d18-n18l19m18", "closed_form")
    assert record.ok
    assert len(load(FAMILY.describe)(instance, solution).splitlines()) < 50
    load(FAMILY.plot)(instance, solution, "d18").savefig(tmp_path / "a.png", dpi=40)


ONE = {"form": "table", "dest": [[0]], "spine": [[0]]}
TWO = {"form": "product", "layers": 1, "pattern": [0], "layer_shift": [0], "slot_shift": [0]}
TWO |= {"column": [[[0]]], "spine": [[[0]]]}


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"form": "other"},
        {"form": "table"},
        {"form": "product"},
        ONE | {"dest": [[0.5]]},
        ONE | {"dest": [0]},
        ONE | {"dest": [[0, 1]]},
        ONE | {"dest": [[2**31]]},
        ONE | {"middle": [[0]]},
        ONE | {"middle": [[0, 1]], "second": [[0]]},
        TWO | {"layers": "two"},
        TWO | {"layers": 0},
        TWO | {"pattern": [1]},
        TWO | {"layer_shift": []},
        TWO | {"spine": [[0]]},
        TWO | {"column": [[[]]], "spine": [[[]]]},
    ],
)
def test_stored_data_that_is_no_solution(packed: dict[str, Any]) -> None:
    instance = synth.read("instances/mlfm/d3-n2l4m3.json")
    with pytest.raises((KeyError, ValueError)):
        load(FAMILY.unpack)(instance, packed)  # type: ignore[arg-type]


def test_a_product_for_another_block_fails_the_check() -> None:
    instance, _, _ = solved("d3-n2l4m3", "closed_form")
    _, record, _ = solved("d3-n3l4m2", "closed_form")  # 24 servers as well
    verdict = load(FAMILY.check)(instance, load(FAMILY.unpack)(instance, record.packed or {}))
    assert not verdict.ok


def test_arrays_are_stored_narrow() -> None:
    wide = PhaseTable(np.array([[300, 0]], np.int32), np.array([[-1, 3]], np.int32))
    packed = load(FAMILY.pack)(wide)
    assert (packed["dest"].dtype, packed["spine"].dtype) == (np.int16, np.int8)


def test_the_study_refuses_unknown_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["everything"]) == 2
    assert "usage" in capsys.readouterr().err
