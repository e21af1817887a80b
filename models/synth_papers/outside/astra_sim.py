"""A schedule's Chakra traces on ASTRA-sim's analytical backend that knows congestion, where its binary is given.

``SYNTH_ASTRA_SIM`` names the binary (AstraSim_Analytical_Congestion_Aware), ``SYNTH_ASTRA_SIM_VERSION`` what it was
built of. Its machines have one dimension: a ring, a full mesh, or one switch. What shares a link is served in the order
in which it comes, one at a time; a switch stores each message before it sends it on; times are whole nanoseconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np

from synth.exchange import chakra
from synth.exchange.transfers import Transfers
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

BINARY, VERSION = "SYNTH_ASTRA_SIM", "SYNTH_ASTRA_SIM_VERSION"
GB = 2**30  # bytes in ASTRA-sim's GB (NetworkFunction.cpp)
RUN_LIMIT = 120.0  # seconds


def missing() -> str | None:
    """Why ASTRA-sim cannot be used here, in words; None where it can."""
    binary = os.environ.get(BINARY)
    if binary is None:
        return f"{BINARY} names no binary of ASTRA-sim"
    return None if shutil.which(binary) else f"{BINARY} = {binary}: cannot be run"


def version() -> str:
    """What the binary was built of, as its owner says."""
    return os.environ.get(VERSION, "of unstated version")


def topology(instance: FabricInstance) -> str | None:
    """``Ring``, ``FullyConnected`` or ``Switch`` where the machine is one of ASTRA-sim's; None for others."""
    machine, net = instance.machine, instance.machine.network
    n = len(machine.ranks)
    if len({*net.bandwidth.tolist()}) != 1 or len({*net.latency.tolist()}) != 1 or np.any(machine.group >= 0):
        return None
    links = sorted(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    ranks = range(n)
    shapes = {
        "Ring": {(r, (r + way) % n) for r in ranks for way in (1, -1)},
        "FullyConnected": {(u, v) for u in ranks for v in ranks if u != v},
        "Switch": {pair for r in ranks for pair in ((r, n), (n, r))},
    }
    return next((name for name, shape in shapes.items() if links == sorted(shape)), None)


def replay(instance: FabricInstance, transfers: Transfers, folder: Path) -> float:
    """When ASTRA-sim's last rank has ended [s]; files for it are written into ``folder``. Raises ``ValueError`` for
    machines that it does not know, ``RuntimeError`` with its words where it refuses."""
    shape = topology(instance)
    if shape is None:
        raise ValueError(f"{instance.name}: ASTRA-sim's backend knows rings, full meshes and one switch")
    net = instance.machine.network
    rate, latency = exact(float(net.bandwidth[0])) / GB, exact(float(net.latency[0])) * 10**9
    chakra.write(transfers, folder / "trace")
    system, workload, *_ = chakra.write_example(transfers, folder / "trace")
    words = {"topology": shape, "npus_count": transfers.ranks, "bandwidth": float(rate), "latency": float(latency)}
    network, memory = folder / "network.yml", folder / "memory.json"
    network.write_text("".join(f"{key}: [ {value} ]\n" for key, value in words.items()))
    memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}\n')
    command = [
        str(Path(str(shutil.which(os.environ[BINARY]))).resolve()),
        f"--workload-configuration={workload.name.removesuffix('.0.et')}",
        f"--system-configuration={system.name}",
        f"--network-configuration={network.name}",
        f"--remote-memory-configuration={memory.name}",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_LIMIT)
    ends = re.findall(r"sys\[(\d+)\] finished, (\d+) cycles", done.stdout)
    if done.returncode or len({rank for rank, _ in ends}) != transfers.ranks:
        raise RuntimeError(f"ASTRA-sim on {instance.name}: {(done.stdout + done.stderr).strip()[-300:]}")
    return float(Fraction(max(int(cycles) for _, cycles in ends), 10**9))
