"""Versions of MSCCL++ that read our plans, and how each is told of them.

Read from microsoft/mscclpp at its tags: v0.6.0 (11e62024) and v0.7.0 (5e991cf5) read plans of another format
(src/executor/execution_plan.cc: ``inputChunks``, ``sm``, ``nvls``); v0.8.0 (b1a88d75) reads ours from the folder that
MSCCLPP_EXECUTION_PLAN_DIR names (apps/nccl/src/nccl.cu) and runs sizes below ``max_message_size``; v0.9.0 and v0.10.0
(6231b4f3) have no such variable: a program registers plans and a selector (python/mscclpp,
AlgorithmCollectionBuilder). ``gstore`` came with v0.10.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from synth.errors import InputError

NAME = "mscclpp"
OLDER = ("0.6", "0.7")


@dataclass(frozen=True)
class Version:
    """``lacks``: operations that it does not know; ``registers``: whether programs register plans (else a variable
    names their folder); ``told``: how it is told of those in ``{folder}``."""

    name: str
    lacks: tuple[str, ...]
    registers: bool
    told: str


_LIBRARY = "LD_PRELOAD=libmscclpp_nccl.so MSCCLPP_NCCL_LIB_PATH=PATH/libnccl.so"
_SNIPPET = f"{_LIBRARY}, and in the program, before it makes a process group: import mscclpp_plans; "
_REGISTERED = _SNIPPET + "mscclpp_plans.register()"
_LATE = ("gstore", "gstorepkt")
VERSIONS = {
    one.name: one
    for one in (
        Version("0.8", _LATE, False, f"{_LIBRARY} MSCCLPP_EXECUTION_PLAN_DIR={{folder}}"),
        Version("0.9", _LATE, True, _REGISTERED),
        Version("0.10", (), True, _REGISTERED),
    )
}
NEWEST = VERSIONS["0.10"]


def version_of(word: str) -> Version | None:
    """The version that ``mscclpp`` or ``mscclpp:0.8`` names; None where the word is of something else. Raises
    :class:`InputError` for a version that is not known, in one line."""
    name, _, number = word.partition(":")
    if name != NAME:
        return None
    if number in VERSIONS:
        return VERSIONS[number]
    if number or word.endswith(":"):
        other = "reads plans of another format" if number in OLDER else "is not known"
        raise InputError(f"{word[:40]}: version {number[:20] or 'of no number'} {other}; {', '.join(VERSIONS)} are")
    return NEWEST


def unknown_to(version: Version, plan: Any) -> str:
    """An operation of a plan (as JSON has it) that a version does not know, or empty."""
    if not version.lacks:
        return ""
    ops = [op for gpu in plan["gpus"] for block in gpu["threadblocks"] for op in block["ops"]]
    names = {inner["name"] for op in ops for inner in (op, *op.get("ops", ()))}
    return next((name for name in version.lacks if name in names), "")
