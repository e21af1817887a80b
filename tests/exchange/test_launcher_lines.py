"""What launchers put before lines is taken away, and nothing else; a log and a matrix are read through all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run
from exchange.machines.reading import text_of
from hypothesis import given
from hypothesis import strategies as st

from synth.exchange.launcher_lines import LOOKED_AT, without_prefixes
from synth.exchange.measurements.logs import Hints, read
from synth.text.input_file import InputFile

FIELD = Path(__file__).resolve().parents[3] / "shared/data/field/07-launcher-prefixes"
PREFIXES = (
    "[0] ", "[ 0] ", "0: ", " 3: ", "node1: ", "n01.cluster.local: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "[rank0]: ",
    "[default0]:", "[0@host-a] ", "[pod/nccl-launcher-x7/main] ", "2024-09-18T12:00:01.123456789Z ", "12:00:01 ",
    "[2024-09-18 12:00:01,5] ", "node1: 2024-09-18T12:00:01Z ", "2024-09-18T12:00:01+02:00 [0] ", "gpu-7: 0: ",
    "> ", ">> ",
)  # fmt: skip
TABLE = """#
#                                                              out-of-place
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1     36.9   28.42   28.42      0
    33554432       8388608     float     sum      -1    703.0   47.73   47.73      0
  1073741824     268435456     float     sum      -1    22386   47.97   47.97      0
"""


def with_prefix(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" if line.strip() else prefix.rstrip() + "\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", [TABLE, text_of("dgx1-topo.txt"), text_of("links.csv")])
def test_a_prefix_is_taken_away(prefix: str, text: str) -> None:
    lines = without_prefixes(with_prefix(prefix, text).splitlines())
    assert [line.text.split() for line in lines] == [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("text", [TABLE, *(text_of(name) for name in ("dgx1-topo.txt", "links.csv", "v100-pair.xml"))])
def test_a_text_without_prefixes_stays(text: str) -> None:
    assert [line.text for line in without_prefixes(text.splitlines())] == text.splitlines()


def test_who_wrote_a_line_is_told() -> None:
    lines = without_prefixes(["a: 1: x y", "b: 1: z", "b: 1:", "", "a: 1:  w"])
    assert lines == [("a: 1:", "x y"), ("b: 1:", "z"), ("b: 1:", ""), ("", ""), ("a: 1:", " w")]


@given(st.lists(st.text(max_size=40), max_size=12))
def test_lines_stay_one_for_one_and_lose_beginnings_only(lines: list[str]) -> None:
    found = without_prefixes(lines)
    assert len(found) == len(lines)
    assert all(line.endswith(one.text) for line, one in zip(lines, found, strict=True))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_log_is_read_through_a_prefix(prefix: str, tmp_path: Path) -> None:
    (tmp_path / "plain.log").write_text(TABLE)
    (tmp_path / "log").write_text("WARNING: from the launcher\n" + with_prefix(prefix, TABLE))
    hints = Hints(test="allreduce", ranks=2, label="x")
    plain, found = (read(InputFile(tmp_path / name), hints) for name in ("plain.log", "log"))
    assert found.seconds.tolist() == plain.seconds.tolist()
    assert found.lines.tolist() == [line + 1 for line in plain.lines.tolist()]


@pytest.mark.skipif(not FIELD.is_dir(), reason="needs ../shared/data/field")
@pytest.mark.parametrize("name", ["plain", "hydra", "kubectl-timestamps", "srun-l"])
def test_the_logs_of_the_field(name: str, tmp_path: Path) -> None:
    assert "48.4 GB/s" in run("fit", FIELD / f"{name}.log", "--test", "allreduce", cwd=tmp_path).stdout


def test_of_a_long_log_lines_are_drawn() -> None:
    """Every second line another program's, more than are looked at: prefixes are found where most lines carry them."""
    most = [f"[{n % 8}] a" if n % 4 else "b" for n in range(3 * LOOKED_AT)]
    assert {line.text for line in without_prefixes(most)} == {"a", "b"}
    half = [f"[{n % 8}] a" if n % 2 else "b" for n in range(3 * LOOKED_AT)]
    assert [line.text for line in without_prefixes(half)] == half
