"""NCCL's tuner plug-in itself, compiled from its source, does what the file says: run where NCCL_SOURCE names a folder
of NVIDIA/nccl. Tried with its commits 3ea7eedf (2.27.5), f1308997, ae7aed19, 56a0c229 and 5067397c."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from synth.exchange.selection import FORMATS, Rule
from synth.exchange.selection.nccl_choice import Nccl
from synth.exchange.selection.nccl_reach import Boxes

COLLECTIVES = ("broadcast", "reduce", "allgather", "reduce_scatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
IGNORED = -1.0
MACHINES = {
    "two boxes of H100 with NVLS": Nccl(Boxes("allreduce", 16, 2, 450e9, 8, 50e9, True), 2, "hopper"),
    "one box of A100": Nccl(Boxes("allreduce", 8, 1, 300e9), 1, "ampere"),
    "four boxes of MI300X": Nccl(Boxes("allreduce", 32, 4, 336e9, 8, 50e9), 4, "mi300x"),
    "four GPUs, one a box": Nccl(Boxes("allreduce", 4, 4, 0.0, 1, 50e9), 4, "hopper"),
    "boxes behind switches that add": Nccl(Boxes("allreduce", 32, 4, 450e9, 8, 50e9, True), 4, "hopper", 390e9),
    "no boxes stated": Nccl(Boxes("allreduce", 6, 6, 0.0, 1, 10e9), None, "volta"),
}
SILENT = ctypes.CFUNCTYPE(None)(lambda: None)  # NCCL's log, whose words are not wanted
Answer = tuple[list[tuple[str, str]], int]  # what the plug-in prefers, and the channels that it sets
Ask = Callable[[str, int, np.ndarray], Answer]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The plug-in as a shared library."""
    source = os.environ.get("NCCL_SOURCE")
    if source is None:
        pytest.skip("NCCL_SOURCE names no folder of NCCL's source")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    places = [Path(source) / place for place in ("plugins/tuner/example", "ext-tuner/example")]
    folder = next(place for place in places if (place / "plugin.c").is_file())
    made = tmp_path_factory.mktemp("plugin") / "plugin.so"
    line = [compiler, "-shared", "-fPIC", "-I", str(folder / "nccl"), "-o", str(made), str(folder / "plugin.c")]
    subprocess.run(line, check=True, capture_output=True)
    found = ctypes.CDLL(str(made))
    found.by_rows = "(*table)[NCCL_NUM_PROTOCOLS]" not in (folder / "plugin.c").read_text()  # type: ignore[attr-defined]
    return found


def opened(library: ctypes.CDLL, file: Path, ranks: int, nodes: int, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A communicator's plug-in that has read the file."""
    monkeypatch.setenv("NCCL_TUNER_CONFIG_FILE", str(file))
    version = next(v for v in (5, 4) if hasattr(library, f"ncclTunerPlugin_v{v}"))
    pointers = [one or 0 for one in (ctypes.c_void_p * 4).in_dll(library, f"ncclTunerPlugin_v{version}")]
    size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    context, domains = pointer(), (number * 3)(nodes, 1, ranks)  # of NVLink, and the least and most ranks of one
    if version == 5:
        init = ctypes.CFUNCTYPE(number, pointer, ctypes.c_uint64, size, size, ctypes.CFUNCTYPE(None), pointer, pointer)(
            pointers[1]
        )
        assert init(ctypes.addressof(context), 0, ranks, nodes, SILENT, ctypes.addressof(domains), None) == 0
    else:
        init = ctypes.CFUNCTYPE(number, size, size, ctypes.CFUNCTYPE(None), pointer)(pointers[1])
        assert init(ranks, nodes, SILENT, ctypes.addressof(context)) == 0
    info = ctypes.CFUNCTYPE(
        number, pointer, number, size, number, pointer, number, number, number, ctypes.POINTER(number)
    )(pointers[2])

    def ask(collective: str, size: int, costs: np.ndarray) -> Answer:
        table, channels = np.ascontiguousarray(costs, dtype=np.float32), ctypes.c_int(0)
        rows = np.array([row.ctypes.data for row in table], dtype=np.uint64)  # as plug-ins before 2.30 take it
        where, data = COLLECTIVES.index(collective), (rows if library.by_rows else table).ctypes.data
        assert info(context, where, size, 1, data, *table.shape, 0, ctypes.byref(channels)) == 0
        return [(ALGORITHMS[a], PROTOCOLS[p]) for a, p in zip(*np.nonzero(table == 0), strict=True)], channels.value

    return ask


def wanted(rules: Sequence[Rule], call: tuple[str, int, int, int], costs: np.ndarray) -> Answer:
    """What the table says: of the rows that fit and that NCCL can run, the one that names most."""
    collective, size, ranks, nodes = call
    fitting = [
        (rule.algorithm, rule.parameters)
        for rule in sorted(rules, key=lambda rule: (rule.ranks is None, rule.nodes is None))
        if rule.collective == collective and rule.covers(size) and rule.ranks in (None, ranks)
        and rule.nodes in (None, nodes)
        and costs[ALGORITHMS.index(rule.algorithm), PROTOCOLS.index(str(rule.parameters["protocol"]))] != IGNORED
    ]  # fmt: skip
    algorithm, told = fitting[0]
    return [(algorithm, str(told["protocol"]))], int(told["channels"])


@pytest.mark.parametrize("machine", MACHINES)
def test_the_plug_in_returns_what_the_table_says(
    machine: str, library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 sizes of five collectives, in the group itself, in a box, in groups of other sizes, and where NCCL has
    neither NVLS nor LL128: never the plug-in's one channel, never a call without a row."""
    nccl = MACHINES[machine]
    rules = nccl.beside(())
    file = tmp_path / "nccl.conf"
    file.write_text(FORMATS["nccl"].write(rules))
    sizes = np.unique(np.geomspace(1, 2**40, 300).astype(np.int64)).tolist() + [0]
    every = np.ones((len(ALGORITHMS), len(PROTOCOLS)))
    poor = every.copy()
    poor[2:], poor[:, 1] = IGNORED, IGNORED
    groups = {(nccl.group.ranks, nccl.nodes or 1), (8, 1), (3, 1), (nccl.group.boxes, nccl.group.boxes), (200, 25)}
    for ranks, nodes in groups:
        ask = opened(library, file, ranks, nodes, monkeypatch)
        for costs in (every, poor):
            for collective in COLLECTIVES:
                for size in sizes:
                    found = ask(collective, size, costs)
                    assert found == wanted(rules, (collective, size, ranks, nodes), costs), (collective, size, ranks)
                    assert found[1] != 1


def test_nccl_counts_channels_where_the_plug_in_says_none() -> None:
    """ncclGetAlgoInfo keeps its own number where the plug-in's is 0, and takes the plug-in's where it is another."""
    source = Path(os.environ.get("NCCL_SOURCE", "")) / "src/enqueue.cc"
    if not source.is_file():
        pytest.skip("NCCL_SOURCE names no folder with src/enqueue.cc")
    line = "info->nMaxChannels = nMaxChannels == 0 ? info->nMaxChannels : nMaxChannels;"
    assert line in source.read_text(encoding="utf-8")
