"""Numbers as a person reads them."""

from __future__ import annotations

import pytest

from synth.text.quantities import named, percent, scaled, shown, times, with_unit


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (9437184, "bytes", "9.00 MiB"), (512, "bytes", "512 B"), (1536, "bytes", "1.50 KiB"), (0, "bytes", "0 B"),
        (1.2149e-5, "s", "12.1 us"), (1.194e-4, "s", "119 us"), (0.5, "s", "500 ms"), (90, "s", "90.0 s"),
        (600, "s", "10.0 min"), (9000, "s", "2.5 h"), (0, "s", "0 s"),
        (24.1e9, "bytes/s", "24.1 GB/s"), (1024, "timesteps", "1,024"), (0, "steps", "0"), (2.5, "phases", "2.5"),
        (None, "s", "–"),
    ],
)  # fmt: skip
def test_shown(value: float | None, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_ratios() -> None:
    assert [percent(x) for x in (None, 0, 0.125, 2.0)] == ["–", "0", "12.50 %", "200 %"]
    assert [times(x) for x in (None, 1.0, 30.2)] == ["–", "1×", "30.2×"]


def test_counts_with_their_names() -> None:
    assert [named(x, "phases") for x in (None, 1024)] == ["–", "1,024 phases"]
    assert named(1024, "bytes") == "1.00 KiB"
    assert (named(71.5, ""), with_unit(71.5, "")) == ("71.5", "71.5")


def test_axes() -> None:
    assert scaled("s", 0.0031) == (1e-3, "ms")
    assert scaled("phases", 12) == (1, "phases")
    assert scaled("bytes", 0) == (1, "B")
