"""``synth make fabric collective=reshard``: the instance of ``synth reshard``, for every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError


def files(folder: Path, rows: str = "a,8x2,bf16,tp:0,tp:1\nb,4,f32,tp=1,") -> dict[str, str]:
    """The keys of two meshes and a table of tensors, written to the folder."""
    texts = {
        "from": 'axes = { tp = 4 }\nranks = "0-3"\n',
        "to": 'axes = { dp = 2, tp = 2 }\nranks = "8-11"\n',
        "tensors": f"name,shape,dtype,from,to\n{rows}\n",
    }
    found = {}
    for key, text in texts.items():
        found[key] = str(folder / f"{key}.file")
        Path(found[key]).write_text(text)
    return found


def made(**keys: Any) -> Any:
    return synth.make("fabric", machine="dgx-a100", boxes=2, **keys)


def test_blocks_are_those_of_the_command_and_any_method_takes_them(tmp_path: Path) -> None:
    keys = files(tmp_path)
    instance = made(collective="reshard", **keys)
    words = [word for key, path in keys.items() for word in (f"--{key}", path)]
    words += ["-o", str(tmp_path / "out"), "--no-references"]
    CliRunner().invoke(app, ["reshard", "dgx-a100", "boxes=2", *words], catch_exceptions=False)
    written = json.loads(next((tmp_path / "out" / "instances").glob("*.json")).read_text())
    own = json.loads(instance.to_json())
    assert {key: own[key] for key in own if key not in ("name", "source")} == {
        key: written[key] for key in written if key not in ("name", "source")
    }
    ours, other = (synth.solve(instance, method, time_limit=5) for method in ("class_trees", "pull"))
    assert ours.value is not None
    assert other.value is not None
    assert min(ours.value, other.value) >= (ours.bound or 0.0) > 0


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"to": None}, "to: is missing: to=FILE"),
        ({"bytes": "1MiB"}, "bytes: has no meaning with collective=reshard"),
        ({"collective": "allgather", "bytes": "1MiB"}, "tensors: has no meaning without collective=reshard"),
        ({"machine": "dgx-a100", "boxes": 1}, "to.file: line 2, ranks: the machine has no rank 8, 9, 10, 11"),
        ({"collective": "reshard", "root": 1}, "root: has no meaning with collective=reshard"),
    ],
)
def test_what_is_missing_or_wrong_is_named(changed: dict[str, Any], fault: str, tmp_path: Path) -> None:
    keys = {"machine": "dgx-a100", "boxes": 2, "collective": "reshard"} | files(tmp_path) | changed
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **{key: value for key, value in keys.items() if value is not None})
    assert fault in str(caught.value)


def test_faults_of_all_three_files_come_together(tmp_path: Path) -> None:
    keys = files(tmp_path, "a,7,bf16,tp:0,\nb,8,f12,,")
    Path(keys["to"]).write_text('axes = { tp = 3 }\nranks = "8-11"\n')
    with pytest.raises(InputError) as caught:
        made(collective="reshard", **keys)
    for fault in ("to.file: line 1, axes: tp 3 is 3", "7 does not divide among 4", "line 3, dtype"):
        assert fault in str(caught.value)


def test_nothing_to_move_is_no_instance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing has to move"):
        made(collective="reshard", **files(tmp_path, "a,8,bf16,,-"))
