"""Tests that can fail: what the property tests have in common, and what each must not do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parent
FILES = sorted(TESTS.rglob("test_*.py"))


def property_tests(file: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            calls = [call.func for call in node.decorator_list if isinstance(call, ast.Call)]
            if any(getattr(name, "id", getattr(name, "attr", "")) == "given" for name in calls):
                yield node


def test_property_tests_find_the_same_examples_every_time() -> None:
    """One profile for all (conftest): what a test's own settings do not name, they take from it."""
    assert settings.get_current_profile_name() == "same every time"
    assert settings().derandomize
    assert settings(max_examples=3, deadline=None).derandomize
    assert not [file for file in FILES if "derandomize=" + "False" in file.read_text()]


def returns(block: list[ast.stmt]) -> Iterator[ast.Return]:
    """Returns of a function itself that leave a block in which nothing was asserted."""
    for statement in block:
        if isinstance(statement, ast.Return) and not any(isinstance(other, ast.Assert) for other in block):
            yield statement
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from returns(getattr(statement, name, []))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_property_test_assumes_and_does_not_return(file: Path) -> None:
    """Hypothesis counts what `assume` sends back and complains of too many; a `return` passes in silence."""
    assert [f"{file.name}:{found.lineno}" for test in property_tests(file) for found in returns(test.body)] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "models/README.md"])
def test_links_between_documents_and_folders_hold(page: str) -> None:
    file = TESTS.parent / page
    links = [link for link in re.findall(r"\]\(([^)#]+)", file.read_text()) if "://" not in link]
    assert [link for link in links if not (file.parent / link).exists()] == []
