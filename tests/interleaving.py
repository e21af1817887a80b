"""Two processes on one folder of records, the first halted or killed at each of its file operations in turn.

``python interleaving.py FOLDER STRIDE OFFSET [SCENARIO…]`` prints a JSON object per scenario: at how many file
operations the first process was halted, and what was lost. What must be there afterwards is written down here, from
what the processes wrote; nothing of :mod:`synth.records.folder` is asked but to read.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synth.records import folder as results
from synth.records import lock
from synth.records import record as records
from synth.records.record import Record

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.scandir", "os.listdir", "fcntl.flock"}
BLOCKED_S = 0.04  # after which the second process is taken to wait for the first
FIRST, INNER = "x/a/m.json", "x/b/m.json"
HELD = (FIRST, "x/a/n.json", INNER, "x/c/m.json")
MOST = 100_000


def record(place: str, message: str) -> Record:
    """A record for this place; what it holds differs with the message."""
    _, instance, method = Path(place).with_suffix("").parts
    values = np.arange(40) + (sum(map(ord, message)) if message else 0)
    data = {
        "format": "synth-record/1", "family": "x", "instance": instance, "instance_file": None, "instance_sha256": "0",
        "method": method, "kind": "reference", "solver": None, "options": {}, "termination": "finished",
        "objective": {"name": "n", "unit": "", "sense": "minimise", "value": 1.0}, "bound": None,
        "verified": {"ok": True, "facts": {}, "faults": []}, "seconds": {"build": 0.0, "solve": 0.0, "check": 0.0},
        "solution": None, "solution_file": None, "message": message,
    }  # fmt: skip
    return Record(data, {"step": values})


def write(folder: Path, place: str, message: str) -> None:
    """Write a record of that place."""
    records.write(record(place, message), folder / place)


def read_everything(folder: Path, expected: Mapping[str, set[str]]) -> list[str]:
    """What of the expected records (messages by place) a reader does not find as it was written."""
    faults = []
    found: dict[str, str] = {}
    for one in results.read_all([folder]):
        if not isinstance(one, Record):
            faults.append(str(one))
            continue
        assert one.path is not None
        place, message = one.path.relative_to(folder).as_posix(), str(one["message"])
        if one.packed is None or np.asarray(one.packed["step"]).tolist() != list(
            record(place, message).packed["step"]  # type: ignore[index]
        ):
            faults.append(f"{place}: its arrays are not those of {message}")
        if place in found:
            faults.append(f"{place}: found twice")
        found[place] = message
    faults += [f"{place}: lost" for place in expected if place not in found]
    faults += [f"{p}: {m!r}, not {expected[p]}" for p, m in found.items() if p in expected and m not in expected[p]]
    return faults


OLD = {place: {"old"} for place in HELD}


def pack(folder: Path) -> None:
    results.pack(folder)


def pack_inner(folder: Path) -> None:
    results.pack(folder / "x" / "a")


def rewrite(folder: Path) -> None:
    write(folder, FIRST, "new")


def rewrite_other(folder: Path) -> None:
    write(folder, FIRST, "other")


def rewrite_and_pack(folder: Path) -> None:
    rewrite(folder)
    pack(folder)


def rewrite_and_pack_inner(folder: Path) -> None:
    rewrite(folder)
    pack_inner(folder)


def read(folder: Path) -> None:
    faults = read_everything(folder, OLD)
    if faults:
        raise AssertionError("; ".join(faults))


def packed_before(folder: Path) -> None:
    pack(folder)
    write(folder, "x/c/m.json", "old")
    write(folder, FIRST, "old")


def loose(folder: Path) -> None:
    """Nothing is packed."""


@dataclass(frozen=True)
class Scenario:
    """What the two processes do, and which messages may stand at which place afterwards."""

    first: Callable[[Path], None]
    second: Callable[[Path], None] | None
    expected: Mapping[str, set[str]]
    before: Callable[[Path], None] = loose


NEW = OLD | {FIRST: {"new"}}
SCENARIOS = {
    "pack-pack": Scenario(pack, pack, OLD),
    "pack-pack-again": Scenario(pack, pack, OLD, packed_before),
    "pack-write": Scenario(pack, rewrite, NEW),
    "write-pack": Scenario(rewrite, pack, NEW),
    "write-write": Scenario(rewrite, rewrite_other, OLD | {FIRST: {"new", "other"}}),
    "outer-inner": Scenario(pack, pack_inner, OLD),
    "inner-outer": Scenario(pack_inner, pack, OLD),
    "inner-newer-outer": Scenario(pack_inner, rewrite_and_pack, NEW),
    "outer-newer-inner": Scenario(pack, rewrite_and_pack_inner, NEW),
    "pack-read": Scenario(pack, read, OLD),
    "read-pack": Scenario(read, pack, OLD, packed_before),
    "crash-pack": Scenario(pack, None, OLD),
    "crash-pack-again": Scenario(pack, None, OLD, packed_before),
    "crash-write": Scenario(rewrite, None, OLD | {FIRST: {"old", "new"}}),
}


def at_step(step: int, below: Path, act: Callable[[], None]) -> None:
    """From now on call ``act`` at this process's ``step``-th file operation below a folder."""
    count = 0
    names = os.fsencode(below)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in EVENTS and (event == "fcntl.flock" or names in _name(arguments)):
            count += 1
            if count == step:
                act()

    sys.addaudithook(hook)


def _name(arguments: tuple[Any, ...]) -> bytes:
    found = arguments[0] if arguments else b""
    return os.fsencode(found) if isinstance(found, (str, bytes, os.PathLike)) else b""


def started(work: Callable[[], None]) -> int:
    """A process that does this work; its exit code is 0 when nothing was raised."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def explored(scenario: Scenario, model: Path, folder: Path, step: int) -> tuple[bool, list[str]]:
    """Whether the first process came to this step, and what was lost when it was halted (killed) there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)
    said, says = os.pipe()
    goes, go = os.pipe()

    def halt() -> None:
        os.write(says, b"!")
        if scenario.second is None:
            os._exit(9)
        os.read(goes, 1)

    def work() -> None:
        at_step(step, folder, halt)
        scenario.first(folder)
        os.write(says, b".")

    first = started(work)
    os.close(says)
    halted = os.read(said, 1) == b"!"
    codes = []
    if halted and scenario.second is not None:
        act = scenario.second
        second = started(lambda: act(folder))
        done, until = 0, time.monotonic() + BLOCKED_S
        while not done and time.monotonic() < until:
            done, status = os.waitpid(second, os.WNOHANG)
            select.select([], [], [], 0.001)
        os.write(go, b"!")
        codes.append(status if done else os.waitpid(second, 0)[1])
    codes.append(os.waitpid(first, 0)[1])
    for handle in (said, goes, go):
        os.close(handle)
    faults = read_everything(folder, scenario.expected)
    if scenario.second is not None:
        faults += [f"a process ended with {os.waitstatus_to_exitcode(code)}" for code in codes if code]
    else:
        results.pack(folder)
        faults += [f"after the next pack: {fault}" for fault in read_everything(folder, scenario.expected)]
    return halted, faults


def storm(model: Path, folder: Path, seed: int) -> list[str]:
    """Packers, writers and readers at once, each with random pauses at its file operations: what was lost."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)

    def worker(number: int) -> None:
        chance = random.Random(1000 * seed + number)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in EVENTS and event != "fcntl.flock" and os.fsencode(folder) in _name(arguments):
                time.sleep(chance.choice((0.0, 0.0, 0.001, 0.004)))

        sys.addaudithook(hook)
        for turn in range(3):
            if number == 0:
                pack(folder)
            elif number == 1:
                (pack_inner if turn % 2 else pack)(folder)
            else:
                write(folder, f"x/w{number}/m.json", str(turn))
                write(folder, FIRST if number == 2 else INNER, str(turn))

    def kept() -> dict[str, set[str]]:
        last = {f"x/w{number}/m.json": {"2"} for number in (2, 3)}
        return OLD | last | {FIRST: {"2"}, INNER: {"2"}}

    workers = [started(lambda number=number: worker(number)) for number in range(4)]  # type: ignore[misc]
    codes = [os.waitpid(one, 0)[1] for one in workers]
    faults = [f"a process ended with {os.waitstatus_to_exitcode(code)}" for code in codes if code]
    return faults + read_everything(folder, kept())


def main(scratch: Path, stride: int, offset: int, names: list[str]) -> None:
    records.INLINE_LIMIT = 10
    lock.POLL_S = 0.002
    for name in names or SCENARIOS:
        scenario = SCENARIOS[name]
        model = scratch / "model"
        shutil.rmtree(model, ignore_errors=True)
        for place in HELD:
            write(model, place, "old")
        scenario.before(model)
        lost: dict[int, list[str]] = {}
        tried = 0
        for step in range(1 + offset, MOST, stride):
            halted, faults = explored(scenario, model, scratch / "folder", step)
            if not halted:
                break
            tried += 1
            if faults:
                lost[step] = faults
        print(json.dumps({"scenario": name, "tried": tried, "lost": lost}), flush=True)
    rounds = 4 if stride > 1 else 60
    if not names:
        faults = [fault for seed in range(rounds) for fault in storm(model, scratch / "folder", seed)]
        print(json.dumps({"scenario": "storm", "tried": rounds, "lost": {"storm": faults} if faults else {}}))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
