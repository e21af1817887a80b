"""Packages that may be called, as ``synth.study("xtree")``, whether they were imported before or not."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from synth.method import Target, load


def call(package: str, target: Target) -> None:
    """Let a call of the package be one of the function behind the target, which is loaded when it is needed."""

    class Called(ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return load(target)(*arguments, **named)

        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(load(target))

    sys.modules[package].__class__ = Called
