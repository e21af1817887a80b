"""Faults of the files behind keys, each with the file's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from synth.errors import Fault, InputError


def guarded(read: Any) -> list[Fault]:
    """What is wrong with a file that ``read`` reads."""
    try:
        read()
    except InputError as error:
        return with_source(error)
    return []


def with_source(error: InputError) -> list[Fault]:
    """Its faults, each with the name of the file it is about."""
    return [replace(fault, path=", ".join(filter(None, (error.source, fault.path)))) for fault in error.faults]
