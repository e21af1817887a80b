"""Records edited by hand and demands out of range: what a hostile or careless user hands in is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synth
from synth import api
from synth.errors import InputError
from synth.family import get_family
from synth.instance import Instance
from synth.method import load
from synth_models.harvest.parts.step_files import read_matrix


@pytest.fixture
def instance() -> Instance:
    parameters = {
        "algorithm": "recursive_doubling",
        "gpus": "4",
        "ports": "1",
        "message_bytes": "4e6",
        "port_bandwidth": "100e9",
        "alpha": "5e-7",
        "delta": "5e-7",
        "reconfiguration_delay": "1e-5",
    }
    return synth.make("harvest", **parameters)


@pytest.mark.parametrize(
    ("nodes", "parents"),
    [([], []), ([99], [0]), ([-1], [0])],
    ids=["no root", "beyond the last GPU", "below the first"],
)
def test_tree_rows_need_a_root_that_exists(instance: Instance, nodes: list[int], parents: list[int]) -> None:
    """A tree without any GPU once read as 0 >= a positive number, from which any bound follows."""
    honest = api.solve(instance, "candidates").value
    assert honest is not None
    row = {"row": "tree", "nodes": nodes, "parents": parents, "inwards": True, "multiplier": 1.0}
    intervals = [{"first": a, "last": b, "rows": [row]} for a in range(4) for b in range(a + 1, 4)]
    certificate: dict[str, Any] = {"unit_exponent": 70, "generators": [], "bundles": [], "intervals": intervals}
    faults = load(get_family("harvest").check_bound)(instance, honest * 1.1, certificate)
    assert faults == ["the certificate is broken: a tree has a root, and only GPUs that exist"]


@pytest.mark.filterwarnings("error")
def test_demands_whose_sums_overflow_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "demand.csv"
    path.write_text("0,1e308,1e308\n1e308,0,1e308\n1e308,1e308,0\n")
    with pytest.raises(InputError, match="larger than"):
        read_matrix(path)
