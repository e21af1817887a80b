"""What a module draws in when it is imported: a small question pays for nothing that it does not use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import synth
from synth.family import family_names, get_family

LIBRARIES = ("networkx", "scipy.sparse", "pandas", "matplotlib", "pyomo", "ortools", "highspy", "pyarrow", "jinja2")
DRAWING = ("matplotlib", "jinja2", "networkx", "pyarrow")


def drawn_in(modules: set[str], libraries: tuple[str, ...]) -> list[str]:
    """The libraries that a new interpreter has once it has imported these modules."""
    program = f"""
import importlib, json, sys
for module in {sorted(modules)!r}:
    importlib.import_module(module)
print(json.dumps([name for name in {libraries!r} if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def test_the_command_and_the_runner_import_no_library() -> None:
    modules = {"synth.cli.main", "synth.api", "synth.records.record", "synth.records.folder", "synth.execution.pool"}
    modules |= {
        "synth.execution.guard",
        "synth.execution.runs",
        "synth.network",
        "synth.schedule",
        "synth.records.verify",
    }
    assert drawn_in(modules, LIBRARIES) == []


@pytest.mark.parametrize("name", family_names())
def test_reading_and_checking_import_no_library(name: str) -> None:
    family = get_family(name)
    parts = (family.instance, family.check, family.check_bound, family.pack, family.unpack)
    assert drawn_in({part.partition(":")[0] for part in parts}, LIBRARIES) == []


@pytest.mark.parametrize("name", family_names())
def test_no_method_imports_what_draws(name: str) -> None:
    targets = {method.target.partition(":")[0] for method in get_family(name).methods.values()}
    assert drawn_in(targets, DRAWING) == []


@pytest.mark.parametrize("name", family_names())
def test_no_method_imports_what_pyomo_calls_scipy_for(name: str) -> None:
    """Pyomo imports these where it sees scipy, which its neighbours use; solving needs none of them."""
    targets = {method.target.partition(":")[0] for method in get_family(name).methods.values()}
    found = drawn_in({"scipy.sparse", *targets}, ("scipy.stats", "scipy.integrate"))
    assert found == []


def test_a_program_that_is_solved_imports_none_either() -> None:
    program = """
import sys
from pathlib import Path
import scipy.optimize
import synth
instance = synth.make("xtree", network="ring", nodes=4, chunks=1)
assert synth.solve(instance, "ilp", options={"horizon": 2}).value == 2
assert "pyomo.environ" in sys.modules
assert "scipy.stats" not in sys.modules
assert sys.modules["scipy.optimize"] is scipy.optimize
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_pyomo_is_imported_in_one_place() -> None:
    """By everything that may come after scipy."""
    root = Path(synth.__file__).resolve().parents[1]
    files = [*(root / "synth").rglob("*.py"), *(root / "models").rglob("*.py")]
    found = [path.name for path in files if re.search(r"^\s*import pyomo\.environ", path.read_text(), re.MULTILINE)]
    assert found == ["algebra.py"]
