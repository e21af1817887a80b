"""A schedule's GOAL on LogGOPSim, where its programs are given.

``SYNTH_LOGGOPSIM`` names the folder with ``txt2bin`` and ``LogGOPSim``, ``SYNTH_LOGGOPSIM_VERSION`` what they were
built of. Its model has one port a rank: L is the latency, G the time of a byte, g that of the first byte, and o, O are
0. Whoever receives a message is occupied by it and begins no send meanwhile; who comes first is served first. So it is
asked about machines with one port a rank only.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from synth.exchange import goal
from synth.exchange.transfers import Transfers
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

FOLDER, VERSION = "SYNTH_LOGGOPSIM", "SYNTH_LOGGOPSIM_VERSION"
LARGEST = 2**31 - 1  # its parameters are C's int; S: all messages are eager
RUN_LIMIT = 120.0  # seconds


class Parameters(NamedTuple):
    """L and G in whole units of ``unit`` seconds."""

    latency: int
    gap: int
    unit: Fraction


def missing() -> str | None:
    """Why LogGOPSim cannot be used here, in words; None where it can."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return f"{FOLDER} names no folder with txt2bin and LogGOPSim"
    absent = [name for name in ("txt2bin", "LogGOPSim") if not os.access(Path(folder) / name, os.X_OK)]
    return f"{FOLDER} = {folder}: no program {absent[0]} there" if absent else None


def version() -> str:
    """What the programs were built of, as their owner says."""
    return os.environ.get(VERSION, "of unstated version")


def parameters(instance: FabricInstance) -> Parameters | None:
    """LogGP's parameters of a machine on which every rank has one link out and one in, all alike, to other ranks or to
    one switch; None for others."""
    machine, net = instance.machine, instance.machine.network
    ranks, n = machine.ranks, machine.nodes
    alike = len({*net.bandwidth.tolist()}) == 1 and len({*net.latency.tolist()}) == 1
    one_port = all(np.all(np.bincount(ends, minlength=n)[ranks] == 1) for ends in (net.src, net.dst))
    if not alike or not one_port or n - len(ranks) > 1:
        return None
    byte = 1 / exact(float(net.bandwidth[0]))
    latency = exact(float(net.latency[0])) * (2 if n > len(ranks) else 1)
    common = math.lcm(byte.denominator, latency.denominator)
    unit = Fraction(math.gcd(int(byte * common), int(latency * common)), common)
    found = Parameters(int(latency / unit), int(byte / unit), unit)
    return found if max(found[:2]) <= LARGEST else None


def replay(instance: FabricInstance, transfers: Transfers, folder: Path) -> float:
    """When LogGOPSim's last rank has ended [s]; files for it are written into ``folder``. Raises ``ValueError`` for
    machines that are none of LogGP's, ``RuntimeError`` with its words where it refuses."""
    found = parameters(instance)
    if found is None:
        raise ValueError(f"{instance.name}: LogGOPSim is asked about one port a rank, all alike")
    programs = Path(os.environ[FOLDER]).resolve()
    goal.write(transfers, folder / "moves.goal")
    settings = {"L": found.latency, "G": found.gap, "g": found.gap, "o": 0, "O": 0, "S": LARGEST}
    asked = [word for name, value in settings.items() for word in (f"--LogGOPS_{name}", str(value))]
    said = ""
    for command in (
        [str(programs / "txt2bin"), "-i", "moves.goal", "-o", "moves.bin"],
        [str(programs / "LogGOPSim"), "-f", "moves.bin", "-b", *asked],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_LIMIT)
        said = done.stdout
        if done.returncode:
            raise RuntimeError(f"LogGOPSim on {instance.name}: {(done.stdout + done.stderr).strip()[-300:]}")
    end = re.search(r"Maximum finishing time at host \d+: (\d+)", said)
    if end is None:
        raise RuntimeError(f"LogGOPSim on {instance.name}: {said.strip()[-300:]}")
    return float(int(end[1]) * found.unit)
