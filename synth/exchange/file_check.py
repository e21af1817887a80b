"""``synth check`` of a file that is no record: an algorithm for an executor, of any format that we read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from synth.errors import Fault, InputError
from synth.exchange import executors, msccl_xml, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.file_kinds import is_plan
from synth.exchange.places import WRITES_DST
from synth.text.quantities import counted

MULTIPROCESSORS = 108  # of an A100: thread blocks of a gpu that run at once
HELD = 2  # sends that a connection of NCCL holds at least (protocol Simple: 8 slots, 4 a chunk)


@dataclass(frozen=True)
class Checked:
    """``summary``: what the file is, in words; ``faults``; ``notes``: what is no fault but worth knowing."""

    summary: str
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


def check_file(path: Path, collective: str | None = None, executor: str | None = None) -> Checked:
    """Read and check a file; ``collective`` overrules what it says it is, ``executor`` names the one whose limits must
    hold. Raises :class:`InputError` where it cannot be understood, or is too large."""
    if is_plan(path):
        return _plan(path, collective, executor)
    read = msccl_xml.read(path, collective)
    faults: list[Fault] = []
    notes: list[str] = []
    verdict = validity.Verdict(())
    for algorithm in read.algorithms():
        verdict = _checked(algorithm, str(path))
        mode = ("in place: " if algorithm.in_place else "out of place: ") if len(read.modes) > 1 else ""
        faults += [replace(fault, message=mode + fault.message) for fault in verdict.faults]
        notes += _notes(algorithm, verdict)
    if executor is not None:
        faults += executors.faults(executor, read.algorithm, read.written)
        faults += [Fault("", f"{executor}: its reader stops at {what}") for what in read.unread]
    else:
        notes += [_taken(name, executors.faults(name, read.algorithm, read.written)) for name in executors.EXECUTORS]
        notes += [f"executors' reader stops at {what}" for what in read.unread]
    if missing := executors.missing(read.written):
        notes.append(f"missing: {_named(missing)}")
    return Checked(describe(read, verdict), tuple(faults), tuple(dict.fromkeys(notes)))


def _checked(algorithm: Algorithm, source: str) -> validity.Verdict:
    try:
        return validity.check(algorithm)
    except InputError as error:
        raise InputError(error.faults, source) from None


def _plan(path: Path, collective: str | None, executor: str | None) -> Checked:
    """MSCCL++ plans have a module of their own."""
    if executor not in (None, "mscclpp"):
        raise InputError(f"is a plan for mscclpp, which {executor} does not read", str(path))
    from synth.exchange.mscclpp.file_report import judge

    return Checked(*judge(path, collective))


def describe(read: msccl_xml.MscclFile, verdict: validity.Verdict) -> str:
    """The algorithm in one line."""
    a = read.algorithm
    place = " and ".join("in place" if mode else "out of place" for mode in read.modes)
    root = "" if a.root is None else f" (root {a.root})"
    words = [
        f"{a.collective}{root} {place}, {counted(a.ranks, 'gpu')}",
        counted(len(a.tb_rank), "thread block"),
        counted(a.steps, "step"),
        f"{counted(a.chunks, 'chunk')} a part",
    ]
    if verdict.facts:
        words += [counted(verdict.facts[f"{key}s"], key) for key in ("channel", "message")]
        words.append(f"the longest chain {counted(verdict.facts['longest_chain'], 'step')}")
    return ", ".join(words)


def _notes(a: Algorithm, verdict: validity.Verdict) -> list[str]:
    notes = []
    if verdict.facts.get("sends_to_hold", 0) > HELD:
        notes.append(
            f"runs only where a connection holds {verdict.facts['sends_to_hold']} sends that are not received yet; "
            f"NCCL's holds {HELD} chunks at least (Simple)"
        )
    if not a.in_place and np.any(WRITES_DST[a.kind] & (a.dst_buffer == 0)):
        notes.append("writes its input although out of place: the caller's send buffer does not survive")
    most = int(np.bincount(a.tb_rank, minlength=1).max(initial=0))
    if most > MULTIPROCESSORS:
        notes.append(f"{most} thread blocks of a gpu must run at once; an A100 has {MULTIPROCESSORS} multiprocessors")
    return notes


def _taken(name: str, refused: list[Fault]) -> str:
    """Whether an executor takes an algorithm, or every kind of reason why not."""
    if not refused:
        return f"executor {name} takes it"
    lines = str(InputError([replace(one, message=one.message.removeprefix(f"{name}: ")) for one in refused]))
    return f"executor {name} refuses it: {'; '.join(lines.splitlines())}"


def _named(missing: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{key} (wanted by {', '.join(names)})" for key, names in missing.items())
