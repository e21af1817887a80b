"""Instances and keys: what is wrong is named, all of it at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth_models.topology.instance import TopologyInstance

SWITCHES: dict[str, Any] = {
    "kind": "switches",
    "nodes": 4,
    "links": [[0, 1], [2, 3]],
    "switches": [{"sends": [1, 3], "receives": [0, 2]}],
}


def file_of(tmp_path: Path, **changes: Any) -> Path:
    """An instance file with a plant of switches, changed."""
    raw = {"format": "synth-instance/1", "family": "topology", "name": "t", "source": "test"}
    file = tmp_path / "t.json"
    file.write_text(json.dumps({**raw, "plant": {**SWITCHES, **changes}}))
    return file


def test_the_numbers_of_two_cubes() -> None:
    """TPU v4's rule: 288 mesh links, 48 switches, 384 links in all; switch 0 closes the first line along x."""
    instance = synth.make("topology", cubes=2)
    assert isinstance(instance, TopologyInstance)
    assert (instance.nodes, len(instance.fixed), len(instance.switches), instance.most_arcs) == (128, 288, 48, 768)
    assert instance.switches[0].sends.tolist() == [48, 112]
    assert instance.switches[0].receives.tolist() == [0, 64]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"switches": [{"sends": [1, 1], "receives": [0, 2]}]}, "plant.switches[0].sends[1] = 1: stands twice"),
        ({"switches": [{"sends": [1, 3], "receives": [0, 7]}]}, "plant.switches[0].receives[1] = 7: is no node"),
        ({"switches": [{"sends": [1], "receives": [0, 2]}]}, "a permutation needs as many"),
        ({"switches": []}, "no link and no circuit can join node 0 and these: 2, 3"),
        ({"links": [[0, 0], [2, 9]]}, "plant.links[1]: names node 9"),
        ({"links": [[0, 0], [2, 9]]}, "plant.links[0]: joins node 0 to itself"),
        ({"one_way": True, "links": [[1, 0], [2, 3]], "switches": [{"sends": [0, 3], "receives": [1, 2]}]}, ""),
        ({"one_way": True, "switches": [{"sends": [1], "receives": [2]}]}, "these: 1, 2, 3"),
        ({"nodes": 5000}, "plant.nodes = 5000: must be <= 4096"),
        ({"kind": []}, "plant"),
        ({"kind": {"a": None}}, "plant"),
        ({"kind": float("nan")}, "plant"),
        ({"switches": [{"sends": [0, 1] * 10**5, "receives": [2, 3] * 10**5}]}, "must have at most 4,096 items"),
        (
            {"nodes": 2000, "switches": [{"sends": list(range(1025)), "receives": list(range(1025))}]},
            "can set up 1050625 circuits",
        ),
    ],
)
def test_faults_of_switches(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    if not words:
        assert synth.read(file_of(tmp_path, **changes))
        return
    with pytest.raises(InputError) as caught:
        synth.read(file_of(tmp_path, **changes))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"nodes": 5, "degree": 1}, "plant.degree = 1: allows 2 links; 5 nodes are joined by no fewer than 4"),
        ({"nodes": 5}, "nodes= needs degree="),
        ({"nodes": 5, "degree": 3, "sides": "2x2"}, "sides = '2x2': has no meaning with nodes="),
        ({"cubes": 2, "degree": 3}, "degree = 3: has no meaning with cubes="),
        ({"cubes": 2, "nodes": 3}, "one of the three"),
        ({"cubes": 100}, "makes 6400 nodes, at most 4096"),
        ({"cubes": 2, "sides": "4xx4"}, "must be whole numbers"),
        ({"cubes": 2, "sides": "2x2", "failed_switches": "4"}, "is no switch, the last is 3"),
        ({"cubes": 2, "sides": "2x2", "failed_switches": "0,1,2,3"}, "nothing can join the 2 cubes"),
    ],
)
def test_faults_of_keys(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("topology", **keys)
    assert words in str(caught.value)


def test_fixed_links_beyond_the_degree() -> None:
    instance = synth.make("topology", nodes=4, degree=2)
    plant = {"kind": "degree", "nodes": 4, "degree": 2, "links": [[0, 1], [0, 2], [0, 3]]}
    with pytest.raises(InputError, match="give node 0 3 links, more than its degree 2"):
        instance.model_copy(update={"plant": plant})
