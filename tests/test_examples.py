"""Which cases of a long test run by default."""

from __future__ import annotations

from typing import Any

import examples
import pytest


class Case:
    """What ``leave_first`` asks of a collected case."""

    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid, self.own_markers = nodeid, [mark.mark for mark in marks]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.own_markers if mark.name == name), None)

    @property
    def is_long(self) -> bool:
        return self.get_closest_marker("long") is not None


def long_of(cases: list[Any]) -> list[bool]:
    examples.leave_first(cases)
    return [case.is_long for case in cases]


def test_so_many_cases_run_by_default_and_slow_ones_do_not_count() -> None:
    two, slow = pytest.mark.long(after=2), pytest.mark.slow
    cases = [Case("t.py::a[0]", two), Case("t.py::a[1]", two, slow), Case("t.py::a[2]", two), Case("t.py::a[3]", two)]
    assert long_of(cases) == [False, True, False, True]


def test_each_test_is_counted_by_itself() -> None:
    one = pytest.mark.long(after=1)
    cases = [Case("t.py::a[0]", one), Case("t.py::b[0]", one), Case("t.py::a[1]", one), Case("u.py::a[0]", one)]
    assert long_of(cases) == [False, False, True, False]


def test_without_a_number_all_cases_are_long() -> None:
    assert long_of([Case("t.py::a", pytest.mark.long), Case("t.py::b")]) == [True, False]


def test_kernels_run_twice_in_long_tests_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "twice", True)
    assert long_of([Case("t.py::a", pytest.mark.long)]) == [False]
