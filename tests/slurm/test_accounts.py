"""`synth batch` on a real Slurm with accounting, preemption and memory limits by the kernel (`cluster.py`, which each
test module starts and ends for itself). Skipped where that cannot be started, with the reason."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import alive
from faulty.files import synth, terminations, traced, write
from slurm import cluster
from slurm.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(cluster.cannot() is not None, reason=str(cluster.cannot()))]
SUBMIT = ("batch", "submit", "in", "--engine", "slurm", "--folder", "b", "--time-limit", "60s")


@pytest.fixture(scope="module", params=["kernel", "polled"])
def any_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Memory limits by the kernel's control groups, then by Slurm's own look once a second."""
    if request.param == "kernel" and not cluster.kernel_limits():
        pytest.skip("no control groups that limit memory can be made here")
    with Cluster(tmp_path_factory.mktemp("slurm"), kernel=request.param == "kernel") as started:
        yield started
