"""What the first session in a fresh clone makes and keeps for the next ones: each file's by one worker, not by all.

Every worker imports every test. Without this each would rewrite the assertions of all test files, compile all modules,
and search them for the constants that property tests try. What is done here is what pytest, Python and Hypothesis do at
an import; what goes wrong here, or is out of date, is left to them.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite
from hypothesis.configuration import storage_directory
from hypothesis.internal.constants_ast import constants_from_module

ROOT = Path(__file__).resolve().parents[1]


def share(config: pytest.Config, number: int, count: int) -> None:
    """The share of one worker of ``count``."""
    files = sorted(file for folder in ("models", "synth", "tests") for file in (ROOT / folder).rglob("*.py"))
    for file in files[number::count]:
        with suppress(Exception):
            if file.name.startswith("test_"):
                _rewrite(file, config)
                continue
            if not Path(cache_from_source(str(file))).exists():
                SourceFileLoader(file.stem, str(file)).get_code(file.stem)
            if ROOT / "tests" not in file.parents:
                _find_constants(file)


def _rewrite(file: Path, config: pytest.Config) -> None:
    folder = rewrite.get_cache_dir(file)
    kept = folder / (file.stem + rewrite.PYC_TAIL)
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        digest, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)


def _find_constants(file: Path) -> None:
    digest = hashlib.sha1(file.read_bytes()).hexdigest()[:16]
    if not (storage_directory("constants").path / digest).exists():
        module = ModuleType(file.stem)
        module.__file__ = str(file)
        constants_from_module(module)
