"""Bad input: every fault by name, exit code 2; what ``synth make harvest`` takes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.instance import parse
from synth.method import load
from synth_models.harvest import FAMILY
from synth_models.harvest import instance as harvest_instance

FABRIC = {"port_bandwidth": "1e11", "alpha": "5e-7", "delta": "5e-7", "reconfiguration_delay": "1e-5"}
GOOD = {"algorithm": "recursive_doubling", "gpus": "8", "ports": "1", "message_bytes": "1e6", **FABRIC}


def raw(**changes):
    return synth.make("harvest", **GOOD).model_dump(mode="json") | changes


def faults(data):
    with pytest.raises(InputError) as caught:
        parse(data, load(FAMILY.instance), "bad.json")
    return str(caught.value)


STEP = {"bytes": 1.0}
BAD = [
    ({"steps": [STEP | {"pairs": [[0, 8]]}]}, "steps[0].pairs[0]: GPU 8 is out of range: there are 0..7"),
    ({"steps": [STEP | {"pairs": [[0, 0]]}]}, "steps[0].pairs[0]: GPU 0 sends to itself"),
    ({"steps": [STEP | {"pairs": [[0, 1]], "volumes": [0]}]}, "steps[0].volumes[0] = 0: must be >= 1"),
    ({"steps": [STEP | {"pairs": [[0, 1]], "volumes": [1.5]}]}, "steps[0].volumes[0] = 1.5"),
    ({"steps": [STEP | {"pairs": [[0, 1]], "volumes": [2**41]}]}, "steps[0].volumes[0] = 2199023255552: must be <="),
    ({"steps": [STEP | {"pairs": [[0, 1]], "volumes": [1, 2]}]}, "steps[0].volumes: must be one a pair: 2 for 1 pairs"),
    ({"steps": [STEP | {"pairs": [[0, 1]], "volumes": []}]}, "steps[0].volumes: must be one a pair: 0 for 1 pairs"),
    ({"steps": [STEP | {"shift": 1, "volumes": [2]}]}, "steps[0].volumes: must be one a pair: 1 for 0 pairs"),
    (
        {"steps": [STEP | {"pairs": [[0, 1], [1, 2], [0, 1]], "volumes": [2**40, 1, 1]}]},
        "steps[0].pairs: 0 to 1 has volume 1099511627777 in all, must be <= 1099511627776",
    ),
    ({"candidates": [{"name": "a", "links": [[0, 1, 1], [0, 1, 1]]}], "ports": 2}, "links[1]: 0 to 1 stands twice"),
    ({"steps": [STEP]}, "steps[0]: give pairs or shift, one of the two"),
    ({"steps": [STEP | {"pairs": [[0, 1]], "shift": 1}]}, "steps[0]: give pairs or shift, one of the two"),
    ({"steps": [STEP | {"pairs": []}]}, "steps[0].pairs: a step has at least one pair"),
    ({"steps": [STEP | {"shift": 8}]}, "steps[0].shift = 8: must be < gpus = 8"),
    ({"steps": [STEP | {"shift": 0}]}, "steps[0].shift = 0: must be >= 1"),
    ({"steps": [{"bytes": -1.0, "shift": 1}]}, "steps[0].bytes = -1.0: must be >= 0"),
    ({"steps": []}, "steps"),
    ({"delta": -1e-9}, "delta = -1e-09: must be >= 0"),
    ({"reconfiguration_delay": -1.0}, "reconfiguration_delay = -1.0: must be >= 0"),
    ({"alpha": -1.0}, "alpha = -1.0: must be >= 0"),
    ({"port_bandwidth": 0.0}, "port_bandwidth = 0.0: must be > 0"),
    ({"ports": 0}, "ports = 0: must be >= 1"),
    ({"gpus": 1}, "gpus = 1: must be >= 2"),
    ({"gpus": "8"}, "gpus = '8'"),
    ({"latency": "maybe"}, "latency = 'maybe'"),
    ({"colour": "red"}, "colour: unknown key"),
    ({"candidates": [{"name": "a", "links": [[0, 1, 2]]}]}, "more ports used than exist: GPU 0 sends on 2"),
    ({"candidates": [{"name": "a", "links": [[1, 0, 1], [2, 0, 1]]}]}, "GPU 0 receives on 2, ports = 1"),
    ({"candidates": [{"name": "a", "links": [[0, 9, 1]]}]}, "candidates[0].links[0]: GPU 9 is out of range"),
    ({"candidates": [{"name": "a", "links": []}] * 2}, "candidates[1].name = 'a': stands twice"),
]


def test_volumes_of_a_pair_that_stands_again_add_up():
    """Rows in the order in which the file names the pairs; nothing of it reaches files of the older kind."""
    plain = [{"bytes": 8.0, "pairs": [[3, 1], [0, 2], [1, 3]]}, {"bytes": 8.0, "shift": 3}]
    old = parse(raw(steps=plain), load(FAMILY.instance), "old")
    assert "volumes" not in old.to_json()
    assert [rows[:, 2].tolist() for rows in old.demands] == [[1, 1, 1], [1] * 8]
    assert old.pairs[0].tolist() == [[3, 1], [0, 2], [1, 3]]
    pairs = [[3, 1], [0, 2], [3, 1], [0, 1]]
    steps = [{"bytes": 8.0, "pairs": pairs}, {"bytes": 4.0, "pairs": pairs, "volumes": [5, 7, 6, 2**40]}]
    new = parse(raw(steps=steps), load(FAMILY.instance), "new")
    assert new.demands[0].tolist() == [[3, 1, 2], [0, 2, 1], [0, 1, 1]]
    assert new.demands[1].tolist() == [[3, 1, 11], [0, 2, 7], [0, 1, 2**40]]
    assert new.pairs[1].tolist() == [[3, 1], [0, 2], [0, 1]]
    assert parse(json.loads(new.to_json()), load(FAMILY.instance), "again") == new


def test_a_file_of_very_many_pairs_has_a_step_a_line(monkeypatch):
    steps = [{"bytes": 8.0, "pairs": [[3, 1], [0, 2]]}, {"bytes": 4.0, "shift": 3}]
    candidates = [{"name": "a", "links": [[0, 1, 1]]}]
    usual = parse(raw(steps=steps, candidates=candidates), load(FAMILY.instance), "usual")
    text = usual.to_json()
    monkeypatch.setattr(harvest_instance, "MANY_PAIRS", 1)
    short = usual.to_json()
    assert json.loads(short) == json.loads(text)
    assert '\n    {"bytes": 8.0, "pairs": [[3, 1], [0, 2]]},\n    {"bytes": 4.0, "shift": 3}\n' in short
    assert parse(json.loads(short), load(FAMILY.instance), "again").to_json() == short


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_files_name_their_fault(changes, message):
    assert message in faults(raw(**changes))


def test_all_faults_at_once():
    text = faults(raw(delta=-1.0, ports=0, steps=[STEP | {"pairs": [[0, 8]]}, {"bytes": -1.0, "shift": 9}]))
    for part in ("delta = -1.0", "ports = 0", "steps[0].pairs[0]", "steps[1].bytes", "steps[1].shift"):
        assert part in text


MAKE = [
    ({"gpus": "6"}, "gpus = '6': must be a power of two for this algorithm"),
    ({"gpus": "12", "algorithm": "swing"}, "gpus = '12': must be a power of two for this algorithm"),
    ({"delta": "-1"}, "delta = '-1': must be >= 0"),
    ({"algorithm": "magic"}, "algorithm = 'magic': must be one of recursive_doubling"),
    ({"radix": "4"}, "radix = '4': has no meaning for recursive_doubling"),
    ({"algorithm": "bruck_alltoall", "radix": "9"}, "radix = '9': must be in 2..gpus = 8"),
    ({"message_bytes": "-1"}, "message_bytes = '-1': must be >= 0"),
    ({"algorithm": "swing_torus"}, "torus: is missing"),
    ({"algorithm": "swing_torus", "torus": "4x4"}, "torus = '4x4': its sides multiply to 16, there are 8 GPUs"),
    (
        {"algorithm": "swing_torus", "torus": "3x4", "gpus": "12"},
        "torus = '3x4': give one to three sides, powers of two",
    ),
    ({"algorithm": "swing_torus", "torus": "2x2x2x1"}, "torus = '2x2x2x1': must be sides like 8x8 or 4x4x4"),
    ({"algorithm": "bine", "radix": "2"}, "radix = '2': has no meaning for bine"),
    ({"algorithm": "bine", "gpus": "12"}, "gpus = '12': must be a power of two for this algorithm"),
    ({"split": "off"}, "split = 'off': has no meaning with algorithm=NAME"),
    ({"algorithm": "binomial_broadcast", "root": "8"}, "root = '8': must be < gpus"),
    ({"colour": "red"}, "colour = 'red': unknown parameter"),
    ({"steps": "nowhere.csv"}, "give algorithm or steps, one of the two"),
    ({"direction": "sideways"}, "direction = 'sideways': must be one of forwards, backwards"),
]


@pytest.mark.parametrize(("changes", "message"), MAKE, ids=[message for _, message in MAKE])
def test_bad_parameters_name_their_fault(changes, message):
    with pytest.raises(InputError) as caught:
        synth.make("harvest", **GOOD | changes)
    assert message in str(caught.value)


def test_missing_parameters_are_listed_together():
    with pytest.raises(InputError) as caught:
        synth.make("harvest", **{"algorithm": "swing"})
    for key in ("ports", "port_bandwidth", "alpha", "delta", "reconfiguration_delay", "gpus", "message_bytes"):
        assert f"{key}: is missing" in str(caught.value)


def test_bad_file_ends_with_exit_code_2(tmp_path, monkeypatch, capsys):
    from synth.cli import main

    file = tmp_path / "bad.json"
    file.write_text(json.dumps(raw(steps=[STEP | {"pairs": [[0, 8]]}])))
    monkeypatch.setattr("sys.argv", ["synth", "solve", str(file), "-m", "bvn", "--results", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 2
    assert "GPU 8 is out of range" in capsys.readouterr().err


def test_steps_of_a_json_file(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"steps": [{"bytes": 5, "shift": 2}, {"bytes": 1, "pairs": [[0, 1]]}]}))
    instance = synth.make("harvest", **{"steps": str(file), "gpus": "4", "ports": "1", **FABRIC})
    assert instance.name == "mine-p1"
    assert instance.pairs[0].tolist() == [[0, 2], [1, 3], [2, 0], [3, 1]]
    assert instance.pairs[1].tolist() == [[0, 1]]
    assert str(tmp_path) not in instance.source


def test_steps_of_a_demand_matrix(tmp_path):
    file = tmp_path / "demand.csv"
    file.write_text("0,3,1\n1,0,3\n3,1,0\n")
    instance = synth.make("harvest", **{"steps": str(file), "ports": "1", **FABRIC})
    assert instance.gpus == 3
    assert instance.bytes_per_pair.tolist() == [3.0, 1.0]
    for text, message in [
        ("0,1\n1,2\n", "row 1, column 1 = '2': a GPU sends nothing to itself"),
        ("0,-1\n1,0\n", "must be a finite number"),
        ("0,1,2\n1,0\n", "row 0: has 3 numbers, the matrix has 2 rows"),
        ("0,0\n0,0\n", "demands nothing"),
        ("0,x\n1,0\n", "row 0, column 1 = 'x'"),
        ("", "the matrix has 0 rows"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError) as caught:
            synth.make("harvest", **{"steps": str(file), "ports": "1", **FABRIC})
        assert message in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        synth.make("harvest", **{"steps": str(tmp_path / "none.csv"), "ports": "1", **FABRIC})


def test_a_demand_matrix_as_one_step(tmp_path):
    """The unit is what all entries are whole multiples of, so nothing is rounded that a float can say."""
    file = tmp_path / "demand.csv"
    for text, unit, volumes in [
        ("0,3,1\n1,0,3\n3,1,0\n", 1.0, [3, 1, 1, 3, 3, 1]),
        ("0,6e9,0\n4e9,0,0\n0,2e9,0\n", 2e9, [3, 2, 1]),
        ("0,0.3,0\n0,0,0.2\n0,0,0\n", 0.1, [3, 2]),
        ("0,7,7\n0,0,7\n0,0,0\n", 7.0, [1, 1, 1]),
    ]:
        file.write_text(text)
        instance = synth.make("harvest", **{"steps": str(file), "split": "off", "ports": "1", **FABRIC})
        assert instance.bytes_per_pair.tolist() == [unit]
        assert instance.demands[0][:, 2].tolist() == volumes
        assert (instance.steps[0].volumes is None) == (max(volumes) == 1)
        assert "split=off" in instance.source
    file.write_text(f"0,1\n{2**41},0\n")
    with pytest.raises(InputError, match="no whole multiples, up to 1099511627776, of one unit"):
        synth.make("harvest", **{"steps": str(file), "split": "off", "ports": "1", **FABRIC})
    mine = tmp_path / "mine.steps"
    mine.write_text(json.dumps([{"bytes": 5, "pairs": [[0, 1], [0, 1], [1, 0]], "volumes": [1, 2, 4]}]))
    keys = {"steps": str(mine), "gpus": "2", "ports": "1", **FABRIC}
    assert synth.make("harvest", **keys).demands[0].tolist() == [[0, 1, 3], [1, 0, 4]]
    with pytest.raises(InputError, match=r"mine\.steps lists steps, there is no matrix to split"):
        synth.make("harvest", **keys, split="off")


def test_make_writes_what_read_takes(tmp_path):
    target = tmp_path / "a.json"
    words = [f"{key}={text}" for key, text in GOOD.items()]
    result = CliRunner().invoke(app, ["make", "harvest", *words, "-o", str(target)])
    assert result.exit_code == 0
    assert parse(json.loads(target.read_text()), load(FAMILY.instance), "a") == synth.make("harvest", **GOOD)
