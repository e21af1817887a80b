"""Guards are the subject here: each starts in a new interpreter."""

from __future__ import annotations

import forked_command
import pytest

from synth.execution import supervisor


@pytest.fixture(autouse=True)
def _new_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "start_guard", forked_command.NEW_GUARD)
