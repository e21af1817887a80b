"""What a module draws in when it is imported: a small question pays for nothing that it does not use."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from command import SYNTH

import synth
from synth.family import family_names, get_family

ROOT = Path(__file__).parents[2]
LIBRARIES = ("networkx", "scipy.sparse", "pandas", "matplotlib", "pyomo", "ortools", "highspy", "pyarrow", "jinja2")
DRAWING = ("matplotlib", "jinja2", "networkx", "pyarrow")
BY_PYOMO = ("scipy.stats", "scipy.integrate")


def drawn_in(libraries: tuple[str, ...], *steps: set[str]) -> list[list[str]]:
    """The libraries that a new interpreter has once it has imported these modules, step after step."""
    program = f"""
import importlib, json, sys
for modules in {[sorted(modules) for modules in steps]!r}:
    for module in modules:
        importlib.import_module(module)
    print(json.dumps([name for name in {libraries!r} if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [list(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_the_command_and_the_runner_import_no_library() -> None:
    modules = {"synth.cli.main", "synth.api", "synth.records.record", "synth.records.folder", "synth.execution.pool"}
    modules |= {
        "synth.execution.guard",
        "synth.execution.runs",
        "synth.network",
        "synth.schedule",
        "synth.records.verify",
    }
    assert drawn_in(LIBRARIES, modules) == [[]]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", family_names())
def test_what_a_family_imports(name: str) -> None:
    """Reading and checking: no library. Its methods: nothing that draws, and nothing that Pyomo, where it sees scipy,
    which its neighbours use, imports of it; solving needs none of these."""
    family = get_family(name)
    parts = (family.instance, family.check, family.check_bound, family.pack, family.unpack)
    checking = {part.partition(":")[0] for part in parts}
    methods = {method.target.partition(":")[0] for method in family.methods.values()}
    by_checking, _, by_methods = drawn_in((*LIBRARIES, *BY_PYOMO), checking, {"scipy.sparse"}, methods)
    assert by_checking == []
    assert set(by_methods).isdisjoint({*DRAWING, *BY_PYOMO})


PARTS = ("scipy", "scipy.sparse", "scipy.optimize")


@cache
def drawn_in_after_pyomo() -> dict[str, list[list[str]]]:
    """Of every part of scipy what a process has once it has imported Pyomo, and a fork of it with that part."""
    program = f"""
import importlib, json, os, sys
def found():
    return [name for name in {("pyomo.environ", *BY_PYOMO)!r} if name in sys.modules]
importlib.import_module("synth.solvers.algebra")
before = found()
for part in {PARTS!r}:
    fork = os.fork()
    if fork == 0:
        importlib.import_module(part)
        print(json.dumps([part, [before, found()]]), flush=True)
        os._exit(0)
    assert os.waitpid(fork, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("part", PARTS)
def test_whoever_imports_scipy_after_pyomo_has_what_it_asked_for(part: str) -> None:
    assert drawn_in_after_pyomo()[part] == [["pyomo.environ"]] * 2


@pytest.mark.long
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


COMPILER = ("numba", "llvmlite")
DRAWN_ON = ("pandas", "networkx", "matplotlib", "pyomo", "ortools", "highspy", "pyarrow", "jinja2", *COMPILER)
LONG = ("pull", "tacos")  # searches that may be worth a compiler
SOLVING = ("tto", "chunk_count")  # its trees by CP-SAT; its bounds by an LP
WITHOUT_SCIPY = {
    "bine": ("groups-16-allreduce", "leaders"),
    "fabric": ("dgx1-allgather", "ring"),
    "mlfm": ("block-24", "closed_form"),
    "optree": ("ring-12", "relay"),
    "xtree": ("equimesh-3x3", "xtree"),
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", family_names())
def test_a_reference_imports_no_solver_and_no_table(name: str, tmp_path: Path) -> None:
    """On the tour's instances, from reading to checking; and no compiler but where kernels take long, which depends on
    the machine, so that here none does."""
    references = [method.name for method in get_family(name).methods.values() if method.kind == "reference"]
    references = [method for method in references if method not in LONG + SOLVING]
    program = f"""
import json, math, sys
from pathlib import Path
import synth
from synth import kernels
from synth.clock import start_up_costs
kernels.LOADING_S = kernels.COMPILING_S = math.inf
for file in sorted(Path({str(ROOT)!r}, "instances/tour").glob("*.json")):
    if json.loads(file.read_text())["family"] == {name!r}:
        instance = synth.read(file)
        for method in {references!r}:
            start_up_costs.plain_s, before = 0.0, set(sys.modules)
            record = synth.solve(instance, method)
            synth.check(record, instance)
            found = sorted({{module.partition(".")[0] for module in set(sys.modules) - before}} & set({DRAWN_ON!r}))
            if found:
                print(file.stem, method, *found)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("family", "instance", "method"), [(name, *what) for name, what in WITHOUT_SCIPY.items()])
def test_a_small_reference_imports_no_scipy(tmp_path: Path, family: str, instance: str, method: str) -> None:
    program = f"""
import sys
import synth
instance = synth.read({str(ROOT / "instances/tour" / instance)!r} + ".json")
assert synth.check(synth.solve(instance, {method!r}), instance).ok
assert "scipy" not in sys.modules
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}  # numba, where a kernel is on disk, imports it too
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("words", [("--help",), ("families",), ("families", "fabric"), ("check", "RECORD"), ()])
def test_what_a_command_imports(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Neither solvers nor tables nor a compiler; without words: completing a method's name, not even numpy."""
    if "RECORD" in words:
        synth.solve(synth.make("xtree", network="ring", nodes=4, chunks=1), "pull", results=tmp_path)
    asked = [str(tmp_path) if word == "RECORD" else word for word in words]
    completing = {"_SYNTH_COMPLETE": "complete_bash", "COMP_WORDS": "synth solve -m ", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", SYNTH, *asked],
        env={**os.environ, **({} if words else completing)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "synth" in imported
    tops = {module.partition(".")[0] for module in imported}
    assert tops & set((*DRAWN_ON, "scipy") if "RECORD" in words else (*DRAWN_ON, "scipy", "numpy")) == set()


def test_pyomo_is_imported_in_one_place() -> None:
    """By everything that may come after scipy."""
    root = Path(synth.__file__).resolve().parents[1]
    files = [*(root / "synth").rglob("*.py"), *(root / "models").rglob("*.py")]
    found = [path.name for path in files if re.search(r"^\s*import pyomo\.environ", path.read_text(), re.MULTILINE)]
    assert found == ["algebra.py"]
