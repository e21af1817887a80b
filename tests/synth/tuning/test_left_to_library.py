"""Sizes that ``synth tune`` leaves to the library: no file covers them, and every file that is written says where it
ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from synth.cli.main import app
from synth.exchange.forms import Program
from synth.exchange.selection import selection_format
from synth.exchange.selection.nccl_reach import Reach
from synth.instance import Instance
from synth.tuning.rows import Candidate, Row
from synth.tuning.table import ranges


class Sized:
    """What rows ask of an instance."""

    def __init__(self, size: int) -> None:
        self.bytes = size


PROGRAMS = tuple(Program("msccl:azure", name) for name in "abc")


def row(size: int, program: Program, seconds: float, own: float | None) -> Row:
    made = Row(cast("Instance", Sized(size)), "allreduce", size, best=Candidate("ring", seconds, program))
    made.reach = None if own is None else Reach(own, "NVLS", "Simple")
    return made


@given(st.lists(st.tuples(st.sampled_from(PROGRAMS), st.sampled_from([None, 0.5, 1.0, 2.0])), min_size=1, max_size=12))
def test_no_file_covers_what_the_library_does_quicker(asked: list[tuple[Program, float | None]]) -> None:
    rows = [row(4**k, program, 1.0, own) for k, (program, own) in enumerate(asked, 5)]
    found = ranges(rows)
    assert [one for part in found for one in part.rows] == rows
    files = [part for part in found if not part.rows[0].left]
    for one in rows:
        covering = [part for part in files if part.least_bytes <= one.size <= part.most_bytes]
        assert len(covering) == (not one.left)
        assert one.left == (one.reach is not None and one.reach.seconds < 1.0) == bool(one.why_left)
        if covering:
            assert covering[0].best.program is one.best.program  # type: ignore[union-attr]
    for part in files:
        k, last = rows.index(part.rows[0]), rows.index(part.rows[-1])
        if k and rows[k - 1].left:
            assert part.least_bytes == part.rows[0].size
        if last + 1 < len(rows) and rows[last + 1].left:
            assert part.most_bytes == part.rows[-1].size


def test_what_is_as_quick_is_written() -> None:
    assert not row(1024, PROGRAMS[0], 1.0, 1.0).left
    assert row(1024, PROGRAMS[0], 1.3e-3, 1.01e-3).why_left == "NCCL's own (NVLS) 1.01 ms; a file would take 1.30 ms"


def tuned(folder: Path, machine: str, sizes: str) -> tuple[str, pd.DataFrame]:
    words = ["tune", machine, "--sizes", sizes, "-m", "in_network", "-o", str(folder), "--time-limit", "60"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split()), pd.read_csv(folder / "table.csv").fillna("")


@pytest.mark.long
def test_what_nccl_does_quicker_in_its_switches_has_no_file(tmp_path: Path) -> None:
    """XML knows no sums of switches: a file would take the call from NCCL's NVLS and be slower. Table, page, screen and
    NCCL's own file say the same, and ``synth evaluate`` takes the table."""
    said, table = tuned(tmp_path, "dgx-h100-nvls", "1KiB,256MiB")
    [small, large] = table.to_dict("records")
    files = sorted(tmp_path.glob("*.xml"))
    assert small["algorithm"] in {path.name for path in files}
    assert not any(re.search(r'maxBytes="(?!1024")', path.read_text().splitlines()[0]) for path in files)
    assert (large["algorithm"], large["in_place"]) == ("", "")
    assert large["left"].startswith("NCCL's own (NVLS) ")
    assert large["reach_seconds"] < large["form_s"]
    assert f"{large['left']}: no file is written, this size is left to NCCL" in said
    assert large["left"] in (tmp_path / "table.md").read_text()
    rules: Any = selection_format("nccl").forms[0][2]((tmp_path / "nccl.conf").read_text())
    own = [one for one in rules if one.collective == "allreduce" and one.ranks == 8 and one.covers(2**28)]
    assert own[0].algorithm == "nvls"
    words = ["--vary", "bandwidth=10%", "--samples", "1", "-m", "ring"]
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "table.csv"), *words])
    assert done.exit_code == 0, done.output


@pytest.mark.long
def test_without_such_switches_every_size_has_a_file(tmp_path: Path) -> None:
    _, table = tuned(tmp_path, "dgx-h100", "1KiB,256MiB")
    assert all(table["algorithm"])
    assert not any(table.get("left", []))
