"""How many examples a property test takes: by default a part, with ``-m slow`` or ``--kernels-twice`` all of them; and
how many cases a long test runs by default."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import is_hypothesis_test, settings

PART = 0.25
USUAL = 100  # where a test says nothing
whole = twice = False


def some(count: int) -> int:
    """Of so many examples, those of this session."""
    return count if whole else math.ceil(PART * count)


def some_of(values: Iterable[Any]) -> list[Any]:
    """For ``parametrize``: one of four values by default, the others are slow (with ``--kernels-twice`` none is). A
    tuple holds an argument for each name."""
    found = []
    for number, value in enumerate(values):
        left_out = [pytest.mark.slow] if number % 4 and not twice else []
        if isinstance(value, ParameterSet):
            found.append(value._replace(marks=[*value.marks, *left_out]))
        else:
            found.append(pytest.param(*value if isinstance(value, tuple) else (value,), marks=left_out))
    return found


def configure(config: pytest.Config) -> None:
    """Find out which session this is, and let property tests find the same examples every time."""
    global whole, twice
    twice = config.getoption("--kernels-twice") is not None
    whole = twice or config.option.markexpr == "slow"
    settings.register_profile("same every time", derandomize=True, deadline=None, max_examples=some(USUAL))
    settings.load_profile("same every time")  # no deadline: a kernel may be compiled meanwhile


def mark_slow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``-m slow``, property tests run again, with all examples."""
    for item in items:
        if config.option.markexpr == "slow" and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)


def leave_first(items: list[pytest.Item]) -> None:
    """The first cases of a test marked ``long(after=...)`` are not long; with ``--kernels-twice`` none is."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is None or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        if twice or seen[test] < mark.kwargs.get("after", 0):
            item.own_markers.remove(mark)
        seen[test] += 1
