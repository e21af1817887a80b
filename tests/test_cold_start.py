"""What a worker makes for the others is what they would make themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cold_start
import pytest
from _pytest.assertion import rewrite


def test_a_file_s_assertions_are_rewritten_where_pytest_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    file = folder / "test_one.py"
    file.write_text("def test_one():\n    x = 1\n    assert x == 2\n")
    (folder / "broken.py").write_text("def (:")
    (folder / "helper.py").write_text("X = 1\n")
    monkeypatch.setattr(cold_start, "ROOT", tmp_path)
    cold_start.share(request.config, 0, 1)
    code = rewrite._read_pyc(file, rewrite.get_cache_dir(file) / f"test_one{rewrite.PYC_TAIL}")
    assert code is not None
    found: dict[str, Any] = {}
    exec(code, found)
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        found["test_one"]()
    assert Path(cold_start.cache_from_source(str(folder / "helper.py"))).exists()
