"""MSCCL++ execution plans (JSON), in and out, and a check with every rule that their loader and kernel leave to the
writer.

Read from microsoft/mscclpp 1f5f065d (src/core/executor/execution_plan.cc, execution_kernel.hpp, execution_common.hpp).
A plan has one entry a GPU: sizes of its buffers in chunks, its channels and remote buffers, and thread blocks whose
operations run in order. The loader looks names up without asking whether they are there and writes past its arrays
where a limit is passed; here all of that is a fault, all at once, each with its place (gpu, tb, op).

What the kernel does that the format does not say, and the reader therefore refuses: ``get`` with different offsets at
its two ends (the kernel swaps them), ``pws`` and ``pwsf`` over memory channels (they give no signal), a ``put`` over
memory channels from buffers of several types (the first one's type counts for all), reading over a port channel.
Over a switch there are three operations: ``glres`` (load from all GPUs of a group, add, store to all of a group),
``gstore`` and ``gstorepkt`` (store to all). A sum that stays where it is made has none (``glre`` is a word of the DSL
alone), and of several sources or destinations the kernel takes the first.
``pipeline`` is a loop (:mod:`synth.exchange.mscclpp.loops`).
"""

from synth.exchange.mscclpp.dealing import Dealing, Loop
from synth.exchange.mscclpp.goals import collective
from synth.exchange.mscclpp.loops import faults
from synth.exchange.mscclpp.pace import at_pace
from synth.exchange.mscclpp.plan import CrowdedError, Limits
from synth.exchange.mscclpp.reader import parse, read
from synth.exchange.mscclpp.schedule import raised, raised_of, replayed, transfers
from synth.exchange.mscclpp.writer import Planned, plan, planned, store, write

__all__ = [
    "CrowdedError",
    "Dealing",
    "Limits",
    "Loop",
    "Planned",
    "at_pace",
    "collective",
    "faults",
    "parse",
    "plan",
    "planned",
    "raised",
    "raised_of",
    "read",
    "replayed",
    "store",
    "transfers",
    "write",
]
