"""What numba is spared when it compiles is there in the numba that is installed, and changes no result."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import os
import numpy as np
from synth.kernels import quicker_numba

changes = [found for name, found in vars(quicker_numba).items() if name in {names!r}]
numba = quicker_numba.import_numba()
assert quicker_numba.NO_COLOURS not in os.environ
for change in changes:
    change()  # raises where this numba has no place for it

@numba.njit
def kernel(values, by):
    order = np.argsort(values)
    kept = [int(values[i]) for i in order if values[i] % by]
    counts = np.zeros(by, np.int64)
    for value in kept:
        counts[value % by] += 1
    parts = np.empty(len(kept) + 1, np.float64)
    parts[0], parts[1:] = np.inf, np.array(kept) / by
    return parts.min(), counts, kept[::-1], sum(kept) > 3 and -1 in {{1, -1}}

print(*kernel(np.arange(97, dtype=np.int64) * 53 % 97, 7))
try:
    kernel(np.zeros(3), "7")
except numba.errors.TypingError as error:
    print("unicode_type" in str(error))
"""
CHANGES = (
    "_linear_algebra",
    "_lengths_in_messages",
    "_comparisons_of_flags",
    "_events_of_locks",
    "_searches_for_types",
    "_wrappers_of_helpers",
    "_machine_code_of_helpers",
    "_searches_for_variables",
)


def _printed(names: tuple[str, ...]) -> str:
    done = subprocess.run([sys.executable, "-c", CODE.format(names=names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_numba_is_left_as_it_is() -> None:
    """Of a release that was not tested nothing of the compiler is replaced."""
    code = """
import numba
from synth.kernels import quicker_numba
from numba.core.codegen import JITCodeLibrary
before = JITCodeLibrary._finalize_final_module
numba.__version__ = "0.99.0"
quicker_numba.spare()
print(JITCodeLibrary._finalize_final_module is before)
numba.__version__ = quicker_numba.TESTED[0] + ".1"
quicker_numba.spare()
print(JITCodeLibrary._finalize_final_module is before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.long
def test_all_changes_have_their_place_and_change_no_result() -> None:
    assert _printed(CHANGES) == _printed(()) != ""


@pytest.mark.slow
@pytest.mark.parametrize("left_out", CHANGES)
def test_each_change_does_without_the_others(left_out: str) -> None:
    assert _printed(tuple(set(CHANGES) - {left_out})) == _printed(())
