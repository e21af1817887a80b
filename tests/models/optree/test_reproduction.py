"""The computations behind OpTree's errata, by hand."""

from __future__ import annotations

import pytest

from synth_papers.optree.page import algorithm_1, ceiling_depth, reduction


def test_algorithm_1_as_printed():
    """N = 16, w = 2, k = 2: m = 4, 4 groups, ceil(16/8) * 4 = 8 wavelengths: 4 steps, then ceil(8/8) * 4 = 4 more; the
    worked example (and Theorem 1) has 12."""
    assert algorithm_1(16, 2, 2) == 8


def test_lemma_3_rounded_up():
    depth, up = ceiling_depth(1024)
    assert (round(depth, 2), up) == (6.39, 7)
    assert ceiling_depth(2048)[1] == 8


def test_reductions():
    assert reduction(35, 1023) == pytest.approx(96.58, abs=0.005)
    assert reduction(None, 5) is None
    assert reduction(280, 100) == pytest.approx(-180)
