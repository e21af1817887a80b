"""The page of benchmarks: made again from its own tables, and a run takes the place of its section."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from published import PUBLISHED, ROOT


def report() -> Any:
    spec = importlib.util.spec_from_file_location("report", ROOT / "tests/benchmarks/report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_its_tables() -> None:
    page = (PUBLISHED / "benchmarks.md").read_text()
    assert report().laid_out(report().sections(page)) == page
    assert set(report().gains(page)) == set(report().SAME_WORK)


def test_a_run_takes_the_place_of_its_section(tmp_path: Path) -> None:
    """Two cases of one group, the second three times as fast; the other sections stay."""
    group = report().SAME_WORK[0]
    cases = [
        {"group": group, "name": name, "fullname": f"tests/benchmarks/bench_xtree.py::{name}", "extra_info": {},
         "stats": {"mean": seconds, "median": seconds}} for name, seconds in (("slow", 3.0), ("quick", 1.0))
    ]  # fmt: skip
    run = {"benchmarks": cases, "machine_info": {}, "datetime": "2026-01-02T03:04:05"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    page = tmp_path / "benchmarks.md"
    page.write_text((PUBLISHED / "benchmarks.md").read_text())
    report().main(page, [str(tmp_path / "run.json")])
    before, after = report().sections((PUBLISHED / "benchmarks.md").read_text()), report().sections(page.read_text())
    assert {name for name in before if before[name] != after[name]} == {"bench_xtree"}
    assert report().gains(page.read_text())[group] == (3.0, "quick")
    assert (tmp_path / report().PICTURE).is_file()
