"""The map of relay's steps: cells made again, the closed bound against exhaustive search."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.brute_force import fewest_steps
from models.optree.cases import options, ring

from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.certificates import _least_cost, check_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.leaps import leap_bound
from synth_models.optree.references.relay import relay
from synth_models.optree.references.relay_wavelengths import colour_rotations, safe_load
from synth_papers.optree.relay_map import NODES, WAVELENGTHS, Cell, caption, measure, remarks

PUBLISHED = Path(__file__).parents[3] / "results/published/optree/relay-map.csv"
ROWS = list(csv.DictReader(PUBLISHED.open()))


@pytest.mark.long(after=4)
@pytest.mark.parametrize(("nodes", "wavelengths"), [(8, 2), (16, 4), (32, 8), (48, 64), (96, 64), (128, 32)])
def test_published_cells(nodes: int, wavelengths: int) -> None:
    """The schedule is replayed and the certificate derived again, both outside the map's own code."""
    asked = ring(nodes, wavelengths)
    verdict = check_solution(asked, relay(asked, options()))
    bound, _, certificate = lower_bound(asked, options())
    assert verdict.ok
    assert check_bound(asked, bound, certificate) == []
    [row] = [row for row in ROWS if (row["N"], row["w"]) == (str(nodes), str(wavelengths))]
    assert (int(row["relay"]), int(row["bound"])) == (verdict.value, bound)


def test_every_published_row() -> None:
    """All cells, none twice, consistent, none below the closed bound; where the theorem holds, at it."""
    cells = {(int(row["N"]), int(row["w"])) for row in ROWS}
    assert len(cells) == len(ROWS)
    assert cells == {(n, w) for n in NODES for w in WAVELENGTHS}
    for row in ROWS:
        nodes, wavelengths, steps, bound = (int(row[key]) for key in ("N", "w", "relay", "bound"))
        assert int(row["excess"]) == steps - bound >= 0
        leaps = -(-(nodes - 1) // (wavelengths + 1))
        assert bound >= leaps
        if 2 * leaps >= wavelengths - 1:  # all numbers of nodes here are even
            assert (steps, bound) == (leaps, leaps)


def test_counts_in_words() -> None:
    """By hand: 16/3 has T = 4 and 8 >= 2, so it is closed; 64/12 has T = 5 and 10 < 11, 100/64 has T = 2."""
    cells = [Cell(64, 12, 6, 5, "leaps"), Cell(16, 3, 4, 4, "leaps"), Cell(100, 64, 4, 4, "reach")]
    assert "of 3 cells 2 are optimal and 3 within one step" in caption(cells)
    assert "Above it: N = 64, w = 12 (6 against 5)." in caption(cells)
    solved = Cell(96, 48, 4, 3, "reach", 3)
    assert "Above it: N = 96, w = 48 (4 against 3, `one_path` takes 3)." in caption([solved])
    bound, closed = remarks(cells)
    assert "in 2 of the map's 3 cells" in bound
    assert "1 of the map's 3 cells, and `relay`'s replayed count is T in 1 of these" in closed
    assert "up to 2 steps above it" in closed
    assert "meets the bound in 1 of these 2 cells" in closed


def test_a_cell_is_the_rings() -> None:
    assert measure(12, 3) == Cell(12, 3, 3, 3, "leaps")


@pytest.mark.parametrize("wavelengths", [1, 2, 3, 4])
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_leap_bound_never_above_the_optimum(nodes: int, wavelengths: int) -> None:
    best = fewest_steps(nodes, wavelengths, nodes - 1)
    assert best is not None
    assert leap_bound(nodes, wavelengths) <= best


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13])
def test_leap_lemma_against_the_recursion(steps: int) -> None:
    """At equal prices the check's own recursion charges an item at least 2(N-1) - 2T and N-1, for every N up to 60."""
    for nodes in range(2, 61):
        assert int(_least_cost(nodes, np.ones(steps, np.int64), nodes - 1)) >= max(
            nodes - 1, 2 * (nodes - 1) - 2 * steps
        )


def test_leap_bound_beyond_the_recursion() -> None:
    """5000 nodes, 64 wavelengths: ceil(4999/65) = 77, where the receive bound has ceil(4999/128) = 40."""
    asked = ring(5000, 64)
    bound, _, certificate = lower_bound(asked, options())
    assert (bound, certificate) == (77, {"binding": "leaps"})
    assert check_bound(asked, 77, certificate) == []
    assert "the leaps argument proves 77 steps, not 78" in check_bound(asked, 78, certificate)[0]


@settings(derandomize=True, max_examples=some(30), deadline=None)
@given(st.integers(2, 120), st.integers(1, 140))
def test_safe_load_always_finds_wavelengths(nodes: int, wavelengths: int) -> None:
    """By one circuit, the hardest case; and no larger load has blocks that are short enough."""
    load = safe_load(nodes, wavelengths)
    assert 1 <= load <= min(nodes, wavelengths)
    assert colour_rotations(nodes, [load], wavelengths, 0) is not None
    assert all(-(-nodes // (nodes // more)) > wavelengths for more in range(load + 1, nodes + 1))
