"""``synth tune`` where thread blocks, steps and launches cost something: what it says, and that nothing of NCCL's own
is quicker under the same costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.exchange import msccl_xml
from synth.exchange.block_costs import costs_for
from synth.family import get_family
from synth.making import make
from synth.tuning import Question, tune
from synth.tuning.rows import Row
from synth.tuning.sizes import read_sizes

COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter")
LIMITS = {"blocks": 108, "channels": 32, "steps": 64}


def rows(
    machine: str, boxes: int, collective: str, sizes: str, folder: Path, seconds: float | None, *methods: str
) -> list[Row]:
    """The table's rows on a named machine with its own GPUs' costs."""
    family = get_family("fabric")

    def made(name: str, size: int):  # type: ignore[no-untyped-def]
        return make(family, {"machine": machine, "boxes": str(boxes), "collective": name, "bytes": str(size)})

    asked = tuple(read_sizes(sizes))
    costs = costs_for(made(collective, asked[-1]), "msccl:azure")
    return tune(Question(made, (collective,), asked, "msccl:azure", folder, seconds, methods=methods, costs=costs))


def written(row: Row, path: Path) -> dict[str, int]:
    """The most thread blocks and channels of a GPU and steps of a block in the row's file, read by itself."""
    assert row.best is not None
    assert row.best.program is not None
    assert row.best.program.algorithm is not None
    msccl_xml.write(row.best.program.algorithm, path, "azure")
    found: Counter[str] = Counter()
    for gpu in ElementTree.parse(path).getroot().iter("gpu"):
        blocks = list(gpu.iter("tb"))
        found["blocks"] = max(found["blocks"], len(blocks))
        found["channels"] = max(found["channels"], len({block.get("chan") for block in blocks}))
        found["steps"] = max([found["steps"], *(len(list(block.iter("step"))) for block in blocks)])
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("boxes", [1, 2, 4])
@pytest.mark.parametrize("machine", ["dgx-a100", "dgx-h100"])
def test_no_file_is_slower_than_ncclls_algorithms(machine: str, boxes: int, collective: str, tmp_path: Path) -> None:
    """References are exported and timed as ours are, all of them, however long that takes; with ``-s`` this prints the
    table."""
    for row in rows(machine, boxes, collective, "1KiB..4GiB", tmp_path, None, "forest"):
        assert row.best is not None
        best, rest = row.best.seconds, min(row.references.values())
        assert best <= rest
        assert row.bound is None or best >= row.bound * (1 - 1e-9)
        found = written(row, tmp_path / "a.xml")
        assert all(found[name] <= most for name, most in LIMITS.items())
        bound = float("nan") if row.bound is None else best / row.bound
        print(f"{machine} x{boxes} {collective} {row.size}: {best * 1e6:.4g} us by {row.best.method}, "
              f"over NCCL's own {best / rest:.3f}, over the bound {bound:.2f}; {found}")  # fmt: skip


@pytest.mark.long
def test_large_messages_take_many_thread_blocks_and_small_ones_few_steps(tmp_path: Path) -> None:
    """One Hopper block carries 39 GB/s: eight GPUs need more than one to bring anything near 450."""
    small, large = rows("dgx-h100", 1, "allreduce", "1KiB,1GiB", tmp_path, 60.0)
    assert small.best is not None
    assert large.best is not None
    assert written(large, tmp_path / "a.xml")["blocks"] >= 16
    assert 2 * 7 / 8 * large.size / large.best.seconds == pytest.approx(370e9, rel=0.05)
    assert written(small, tmp_path / "b.xml")["steps"] <= 16
    assert 8e-6 < small.best.seconds < 30e-6


def test_the_model_is_named_and_may_be_given(tmp_path: Path) -> None:
    words = ["tune", "dgx-h100", "gpus=2", "--sizes", "1MiB", "-m", "forest", "-o", str(tmp_path)]
    times = []
    for more in ([], ["--cost", "block=1GB/s"], ["--gpu", "ideal"]):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 0, done.output
        said = " ".join(done.output.split())
        assert ("an ideal executor" in said) == (more[-1:] == ["ideal"])
        assert ("cost model: hopper" in said) == (more[-1:] != ["ideal"])
        times.append(float(pd.read_csv(tmp_path / "table.csv")["form_s"][0]))
    assert times[1] > times[0] > times[2]


@pytest.mark.parametrize(
    ("more", "words"), [(["--gpu", "pascal"], "must be one of volta"), (["--cost", "x=1"], "must be KEY=VALUE")]
)
def test_what_is_not_known_is_said(more: list[str], words: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["tune", "dgx-h100", "--sizes", "4KiB", "-o", str(tmp_path / "x"), *more])
    assert words in str(done.exception)
    assert not (tmp_path / "x").exists()
