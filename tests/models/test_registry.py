"""Every family and method is whole: docstring, loadable target, a test that names it, instances that run."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from synth.family import family_names, get_family
from synth.instance import read

ROOT = Path(__file__).resolve().parents[2]
METHODS = [(family, method) for family in family_names() for method in get_family(family).methods]


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_method_is_loadable_and_documented(family, method):
    found = get_family(family).methods[method]
    function = found.load()
    assert inspect.getdoc(function)
    assert inspect.getdoc(inspect.getmodule(function))
    assert found.kind in ("program", "reference", "bound")
    assert (found.kind == "program") <= bool(found.solvers)
    assert list(inspect.signature(function).parameters) == ["instance", "options"]


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_method_is_named_in_a_test(family, method):
    texts = [path.read_text() for path in (ROOT / "tests" / "models" / family).glob("test_*.py")]
    assert any(f'"{method}"' in text or f"{method}.solve" in text or f"import {method}" in text for text in texts)


@pytest.mark.parametrize("family", family_names())
def test_family_ships_instances_that_name_their_source(family):
    files = sorted((ROOT / "instances" / family).glob("*.json"))
    assert files
    for file in files:
        instance = read(file)
        assert instance.family == family
        assert instance.name == file.stem
        assert instance.source


@pytest.mark.parametrize("family", family_names())
def test_default_methods_exist_and_hold_a_bound(family):
    found = get_family(family)
    assert set(found.default_methods) <= set(found.methods)
    assert any(found.methods[name].kind != "reference" for name in found.default_methods)
