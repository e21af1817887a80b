"""Solutions as they are: a schedule for two wavelengths is one for three, not for one; the best of several is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import UnsupportedError
from synth.family import get_family
from synth.library import as_they_are, best_known
from synth.method import Verdict, load
from synth.options import RunOptions
from synth.records.folder import pack


def ring(folder: Path, wavelengths: int) -> synth.Instance:
    file = folder / f"w{wavelengths}.json"
    made = synth.make("optree", nodes=6, wavelengths=wavelengths, name=f"w{wavelengths}")
    file.write_text(made.to_json())
    return synth.read(file)


def test_fewer_wavelengths_do_for_more(tmp_path: Path) -> None:
    """Of what two and four wavelengths need, three can use the one and five take the other; one can use neither."""
    values = {w: synth.solve(ring(tmp_path, w), "optree", results=tmp_path / "lib").value for w in (2, 4)}
    pack(tmp_path / "lib")
    best_known.make(tmp_path / "lib")
    options = RunOptions(None, method={"library": str(tmp_path / "lib" / best_known.NAME)})
    check = load(get_family("optree").check)
    for wavelengths, known in ((3, 2), (5, 4)):
        outcome = as_they_are.best(ring(tmp_path, wavelengths), options, check)
        assert check(ring(tmp_path, wavelengths), outcome.solution).value == values[known]
        assert outcome.message == f"w{known} by optree"
        assert outcome.made_by == ("composed", "optree")
    with pytest.raises(UnsupportedError, match="no solution of another instance"):
        as_they_are.best(ring(tmp_path, 1), options, check)


def test_what_the_check_counts_is_no_solution(tmp_path: Path) -> None:
    synth.solve(ring(tmp_path, 2), "optree", results=tmp_path / "lib")
    pack(tmp_path / "lib")
    best_known.make(tmp_path / "lib")
    options = RunOptions(None, method={"library": str(tmp_path / "lib" / best_known.NAME)})

    def counted(*_: Any) -> Verdict:
        return Verdict(1.0, {"replayed": False}, [])

    with pytest.raises(UnsupportedError):
        as_they_are.best(ring(tmp_path, 3), options, counted)
