"""A family whose instances say how their run goes wrong: what the runner and the batches are tested with.

Put this folder on PYTHONPATH; the `.dist-info` folder beside this file makes it an installed family.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from synth.clock import start_up_costs
from synth.family import Family
from synth.instance import Instance
from synth.method import Method, Objective, Outcome, Verdict, by_name
from synth.options import RunOptions

if os.environ.get("FAULTY_THREAD") and b"synth.execution" not in Path("/proc/self/cmdline").read_bytes():
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()  # from such a command no guard is forked


class FaultyInstance(Instance):
    """`number` is the answer; `seconds` how long it takes; `megabytes` what the run holds meanwhile."""

    family: Literal["faulty"]
    number: int = 1
    behaviour: Literal[
        "good", "crash", "exit", "hang", "grow", "raise", "noise", "stray", "late", "limit", "environment", "empty",
        "thread", "process", "compile", "compile_and_hang", "pause",
    ] = "good"  # fmt: skip
    seconds: float = 0.0
    megabytes: int = 0
    gate: str | None = None  # a file without which the run does not end
    trace: str | None = None  # a file to which the run adds a line when it starts and when it ends
    imports: str | None = None  # a module that the run imports
    solver: str | None = None  # the run solves a small program by this solver first


def note(instance: FaultyInstance, event: str) -> None:
    """A line `name pid event time` in the trace, in one write."""
    if instance.trace:
        with Path(instance.trace).open("a") as trace:
            trace.write(f"{instance.name} {os.getpid()} {event} {time.monotonic()}\n")


def solve_by(solver: str) -> None:
    """Solve a small program, of a kind that this solver takes."""
    from synth import api
    from synth.solvers.catalogue import known_solvers

    ring = api.make("xtree", network="ring", nodes=4, chunks=1)
    method = "cpsat" if solver == "cpsat" else "ilp"
    assert api.solve(ring, method, solver=solver, options={"horizon": 2}).value == 2
    assert known_solvers()[solver].module in sys.modules


def behave(instance: FaultyInstance, options: RunOptions) -> Outcome:
    """Do what the instance says."""
    note(instance, "start")
    if instance.imports:
        import_module(instance.imports)
    if instance.solver:
        solve_by(instance.solver)
    held = bytearray(instance.megabytes * 1_000_000)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(instance.seconds)
    while instance.gate and not Path(instance.gate).exists():
        time.sleep(0.02)
    match instance.behaviour:
        case "crash":
            ctypes.string_at(0)
        case "exit":
            print("the library gave up", file=sys.stderr, flush=True)
            os._exit(7)
        case "raise":
            raise ValueError("the method has a fault")
        case "noise":
            os.write(2, b"x" * 100_000 + b"\nlast words\n")
        case "hang":
            while True:  # a C loop that no Python signal handler interrupts
                signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
                ctypes.CDLL(None).sleep(1000)
        case "grow":
            hoard = []
            while True:
                hoard.append(b"x" * 20_000_000)
                time.sleep(0.005)
        case "stray":
            subprocess.Popen(["sleep", "987"], start_new_session=True)
            subprocess.Popen(["sleep", "986"])
        case "late":
            time.sleep(1000)
        case "limit":
            return Outcome("time_limit", solution=instance.number, bound=0.0, bound_proof="nothing is below 0")
        case "environment":
            print(
                "threads", os.environ["OMP_NUM_THREADS"], os.environ["NUMBA_NUM_THREADS"], file=sys.stderr, flush=True
            )
        case "thread":
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        case "process":
            fresh = b"synth.execution.child" in Path("/proc/self/cmdline").read_bytes()
            print("fresh" if fresh else "forked", file=sys.stderr, flush=True)
        case "compile" | "compile_and_hang":  # longer than the run may take at all
            start_up_costs.begin()
            time.sleep(7.0)
            start_up_costs.end()
            if instance.behaviour == "compile_and_hang":
                signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
                time.sleep(1000)
        case "pause":  # the command, its guard and the run, as a batch system suspends all of a job
            guard = os.getppid()
            command = int(Path(f"/proc/{guard}/stat").read_text().rpartition(")")[2].split()[1])
            for one in (command, guard, os.getpid()):
                os.kill(one, signal.SIGSTOP)
        case "empty":
            return Outcome("time_limit", message="nothing found")
    note(instance, "end")
    return Outcome("finished", solution=instance.number)


def check(instance: FaultyInstance, solution: int) -> Verdict:
    """The number is the instance's."""
    return Verdict(float(solution), faults=[] if solution == instance.number else ["another number"])


def check_bound(instance: FaultyInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Any bound passes."""
    return []


def pack(solution: int) -> dict[str, Any]:
    """The number."""
    return {"number": solution}


def unpack(instance: FaultyInstance, packed: Mapping[str, Any]) -> int:
    """The number."""
    return int(packed["number"])


def describe(instance: FaultyInstance, solution: int) -> str:
    """The number."""
    return str(solution)


_HERE = "synth_faulty:"
FAMILY = Family(
    name="faulty",
    title="runs that go wrong",
    citation="none",
    objective=Objective("number", ""),
    instance=_HERE + "FaultyInstance",
    keys=_HERE + "absent",
    make=_HERE + "absent",
    check=_HERE + "check",
    check_bound=_HERE + "check_bound",
    pack=_HERE + "pack",
    unpack=_HERE + "unpack",
    table=_HERE + "absent",
    describe=_HERE + "describe",
    plot=_HERE + "absent",
    methods=by_name(Method("behave", "reference", "does what the instance says", "faulty_method:behave")),
    default_methods=("behave",),
)
