"""What holds for all tests: property tests find the same examples every time, a missing solver skips what needs it."""

from __future__ import annotations

import pytest
from hypothesis import settings

from synth.solvers.catalogue import SOLVERS

settings.register_profile("same every time", derandomize=True)
settings.load_profile("same every time")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with a parameter `solver` needs that solver, and no other."""
    for item in items:
        call = getattr(item, "callspec", None)
        solver = SOLVERS.get(call.params.get("solver")) if call else None
        if solver is not None and not solver.installed:
            item.add_marker(pytest.mark.skip(reason=f"{solver.name} is not installed"))
