"""A schedule's transfers on SimGrid (Debian's libsimgrid-dev): ``replay.cpp``, built with g++ and run.

SimGrid knows nothing of our replay: it gets the machine's links, the flat table of transfers, and gives the moment at
which the last one has arrived. ``replay.cpp`` says how a transfer becomes messages of SimGrid.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pandas as pd

from synth_models.fabric.instance import FabricInstance

if TYPE_CHECKING:
    import os

Mode = Literal["one-at-a-time", "whole-routes", "fair"]
SOURCE = Path(__file__).with_name("replay.cpp")
HEADERS = ("/usr/include/simgrid/s4u.hpp", "/usr/local/include/simgrid/s4u.hpp")
BUILD_LIMIT, RUN_LIMIT = 300.0, 300.0  # seconds


class Simulated(NamedTuple):
    """What SimGrid says: its version, when the last transfer has arrived [s], and a row a transfer, ``begin_s`` and
    ``end_s`` by its row in the table."""

    version: str
    seconds: float
    times: pd.DataFrame


def missing() -> str | None:
    """Why SimGrid cannot be used here, in words; None where it can."""
    if shutil.which("g++") is None:
        return "g++ is not installed"
    if not any(Path(header).is_file() for header in HEADERS):
        return "SimGrid is not installed (Debian: libsimgrid-dev)"
    return None


def build(folder: Path) -> Path:
    """Compile the program into the folder; returns its path. Raises ``RuntimeError`` with the compiler's words."""
    program = folder / "replay"
    command = ["g++", "-std=c++17", "-O1", str(SOURCE), "-lsimgrid", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT)
    if done.returncode:
        raise RuntimeError(f"{SOURCE.name} cannot be built: {done.stderr.strip()}")
    return program


def links_table(instance: FabricInstance) -> pd.DataFrame:
    """Columns ``link,src,dst,bandwidth,latency,group``: a row a link that works, numbered as ``file_links`` are."""
    machine, net = instance.machine, instance.machine.network
    return pd.DataFrame(
        {
            "link": machine.file_links,
            "src": net.src,
            "dst": net.dst,
            "bandwidth": net.bandwidth,
            "latency": net.latency,
            "group": ["" if group < 0 else str(group) for group in machine.group.tolist()],
        }
    )


def replay(
    program: str | os.PathLike[str], instance: FabricInstance, table: pd.DataFrame, mode: Mode, folder: Path
) -> Simulated:
    """What SimGrid says of the transfers in a flat table (``synth show RECORD --csv``) on the instance's machine.

    Files for the program are written into ``folder``. Raises ``RuntimeError`` with its words where it refuses them."""
    links, transfers, times = (folder / f"{name}.csv" for name in ("links", "transfers", "times"))
    links_table(instance).to_csv(links, index=False)
    table.to_csv(transfers, index=False)
    command = [str(program), str(links), str(transfers), mode, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT)
    if done.returncode:
        raise RuntimeError(f"SimGrid on {instance.name}: {done.stderr.strip().splitlines()[-1]}")
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    return Simulated(said["simgrid"], float(said["seconds"]), pd.read_csv(times, index_col="row"))
