"""Readers of values from files: every wrong kind, range and shape is refused before any arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.text import untrusted

ODD = [0, 1, -1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**64, float("nan"), float("inf")]


@pytest.mark.parametrize("value", ODD)
def test_a_number_outside_its_range_is_refused_whatever_its_form(value: float) -> None:
    for stored in ({"x": [value]}, {"x": np.asarray([value])}, {"x": [0, value, 1]}):
        fits = isinstance(value, int) and 0 <= value <= 2**31 - 1
        if fits:
            assert untrusted.whole_numbers(stored, "x", 0).max() >= value
        else:
            with pytest.raises(ValueError, match=r"x holds|x does not hold"):
                untrusted.whole_numbers(stored, "x", 0)


@pytest.mark.parametrize("value", [*ODD, True, "1", None, [1], 1.0])
def test_one_whole_number(value: object) -> None:
    if type(value) is int and -5 <= value <= 5:
        assert untrusted.whole({"x": value}, "x", -5, 5) == value
    else:
        with pytest.raises(ValueError, match="x is"):
            untrusted.whole({"x": value}, "x", -5, 5)


@pytest.mark.parametrize("stored", [{}, {"x": 3}, {"x": [[1], [2, 3]]}, {"x": [[1, 2]]}, {"x": ["a"]}, {"x": [1.5]}])
def test_wrong_shapes_and_kinds(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^x "):
        untrusted.whole_numbers(stored, "x")


def test_shapes() -> None:
    assert untrusted.whole_numbers({"x": []}, "x").shape == (0,)
    assert untrusted.whole_numbers({"x": []}, "x", shape=(None, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="x is empty"):
        untrusted.whole_numbers({"x": []}, "x", shape=(2,))
    with pytest.raises(ValueError, match="x has shape 1 x 2, not any x 3"):
        untrusted.whole_numbers({"x": [[1, 2]]}, "x", shape=(None, 3))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, 10**400])
def test_one_number(value: object) -> None:
    with pytest.raises(ValueError, match="x is"):
        untrusted.number({"x": value}, "x")


@given(st.integers(1, 3), st.integers(1, 3), st.data())
@settings(derandomize=True, max_examples=some(60))
def test_a_truth_value_among_numbers_is_refused(rows: int, columns: int, data: st.DataObject) -> None:
    """JSON's true is no 1, though numpy makes one of it."""
    table: list[list[float | bool]] = [[1] * columns for _ in range(rows)]
    assert untrusted.whole_numbers({"x": table}, "x", shape=(None, None)).tolist() == table
    table[data.draw(st.integers(0, rows - 1))][data.draw(st.integers(0, columns - 1))] = data.draw(st.booleans())
    for read in (untrusted.whole_numbers, untrusted.numbers):
        for stored, shape in ((table, (None, None)), ([x for row in table for x in row], (None,))):
            with pytest.raises(ValueError, match=r"^x (holds a truth value|does not hold)"):
                read({"x": stored}, "x", shape=shape)


@pytest.mark.parametrize("value", [{}, "", None, 0, False, [1], [[]], ["text"], {"key": []}])
def test_a_list_of_objects(value: object) -> None:
    """Nothing that is empty stands for an empty list."""
    assert untrusted.objects({"x": [{}, {"key": 1}]}, "x") == [{}, {"key": 1}]
    assert untrusted.objects({"x": []}, "x") == []
    for stored in ({"x": value}, {}):
        with pytest.raises(ValueError, match="x is not a list of objects"):
            untrusted.objects(stored, "x")


def test_flags() -> None:
    assert untrusted.flags({"x": [True, False]}, "x").tolist() == [True, False]
    assert untrusted.flags({"x": np.array([1, 0], dtype=np.int8)}, "x").tolist() == [True, False]
    with pytest.raises(ValueError, match="x holds 2"):
        untrusted.flags({"x": [0, 2]}, "x")


@given(
    st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**62, -(2**63), 2**31])] * 2), max_size=6)
)
@settings(derandomize=True, max_examples=some(200))
def test_sums_are_exact(rows: list[tuple[int, int]]) -> None:
    left, right = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    assert untrusted.exact_dot(left, right) == sum(a * b for a, b in rows)
    assert untrusted.exact_sum(left) == sum(a for a, _ in rows)
