"""What others make and run, where it is here: generated traces come in as classes, ASTRA-sim ends when we do."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from models.step.test_folding import four, made

import synth
from synth.options import RunOptions
from synth_models.step.check.replay import check_step
from synth_models.step.instance import StepInstance, size
from synth_models.step.references import issued, longest_tail
from synth_models.step.views.chakra import traces

GENERATED = os.environ.get("SYNTH_GENERATED_TRACES")  # of symbolic_tensor_graph: NAME/t.<rank>.et and NAME/t.json
ASTRA_SIM = os.environ.get("SYNTH_ASTRA_SIM")  # its analytical backend that knows congestion


@pytest.mark.slow
@pytest.mark.skipif(GENERATED is None, reason="SYNTH_GENERATED_TRACES names no folder of generated traces")
@pytest.mark.parametrize(("name", "ranks", "classes"), [("llama8", 8, 2), ("moe8", 8, 2), ("llama64", 64, 2)])
def test_generated_traces_come_in_and_go_out(name: str, ranks: int, classes: int, tmp_path: Path) -> None:
    folder = Path(GENERATED or "") / name
    step = synth.make("step", traces=folder / "t", groups=folder / "t.json", bandwidth="50GB/s", flops=400e12)
    assert isinstance(step, StepInstance)
    assert (size(step), len(step.classes)) == (ranks, classes)
    found = longest_tail.solve(step, RunOptions()).solution
    assert check_step(step, found).faults == []
    assert len(traces(step, found, tmp_path / "out")) == ranks + 1


@pytest.mark.skipif(ASTRA_SIM is None, reason="SYNTH_ASTRA_SIM names no binary of ASTRA-sim")
@pytest.mark.parametrize("method", [issued, longest_tail])
def test_astra_sim_ends_when_we_do(method: ModuleType, tmp_path: Path) -> None:
    """Over a full mesh, in groups of two, where its direct and its ring are ours: within 2 %."""
    step = made(four(tmp_path))
    found = method.solve(step, RunOptions()).solution
    ours = check_step(step, found).value
    assert ours is not None
    *_, groups = traces(step, found, tmp_path / "out")
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    system = {
        "scheduling-policy": "FIFO", "endpoint-delay": 1, "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1, "collective-optimization": "baseline", "local-mem-bw": 10**9, "boost-mode": 0,
        "roofline-enabled": 1, "peak-perf": 1, **{f"{kind}-implementation": ["ring"] for kind in kinds},
    }  # fmt: skip
    (tmp_path / "system.json").write_text(json.dumps(system))
    (tmp_path / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    (tmp_path / "network.yml").write_text(
        f"topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ {1e9 / 2**30!r} ]\nlatency: [ 1000.0 ]\n"
    )
    command = [
        str(ASTRA_SIM), f"--workload-configuration={tmp_path / 'out'}", f"--comm-group-configuration={groups}",
        f"--system-configuration={tmp_path / 'system.json'}", f"--network-configuration={tmp_path / 'network.yml'}",
        f"--remote-memory-configuration={tmp_path / 'memory.json'}",
    ]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=True).stdout
    ends = [int(one) for one in re.findall(r"finished, ([0-9]+) cycles", said)]
    assert len(ends) == 4
    assert max(ends) / 1e9 == pytest.approx(ours, rel=0.02)
