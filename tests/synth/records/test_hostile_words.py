"""What a record says of methods and solvers of others is anybody's text: it is read as such or refused in words, and
whatever a record says, no terminal obeys it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import synth
from synth import api
from synth.cli.main import app
from synth.errors import InputError
from synth.records import record as records

SHIPPED = Path(__file__).resolve().parents[3] / "instances"
KEYS = ("method_origin", "solver_origin", "question")
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\r\x9b1A\u202egnorw"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A record's data, its instance's text within it."""
    folder = tmp_path_factory.mktemp("words")
    instance = synth.read(SHIPPED / "xtree" / "ring-8-c1.json")
    stored = api.solve(instance, "pull", results=folder)
    assert stored.path is not None
    found: dict[str, Any] = json.loads(stored.path.read_text())
    found["instance_text"] = (SHIPPED / "xtree" / "ring-8-c1.json").read_text()
    return found


def put(folder: Path, data: dict[str, Any], **changes: Any) -> Path:
    path = folder / "pull.json"
    path.write_text(json.dumps(data | changes))
    return path


def fits(key: str, value: Any) -> bool:
    """Whether the value is one that a run writes."""
    if value is None:
        return True
    if not isinstance(value, str):
        return False
    if key == "question":
        return len(value) <= 255 and re.fullmatch("[A-Za-z0-9_=-]*", value) is not None
    return len(value) <= 300 and value.isprintable()


@pytest.mark.long
@pytest.mark.parametrize("key", KEYS)
@given(value=ANY_JSON)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_another_kind_of_value_is_refused_by_name(tmp_path: Path, data: dict[str, Any], key: str, value: Any) -> None:
    path = put(tmp_path, data, **{key: value})
    if fits(key, value):
        assert records.read(path).data[key] == value
        return
    with pytest.raises(InputError) as caught:
        records.read(path)
    assert key in str(caught.value)
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "value",
    [5, 1e300, True, [], ["a"], {"a": 1}, "x" * 10**6, ESCAPES, "a\nb", "\x00"],
    ids=lambda value: type(value).__name__,
)
def test_one_such_record_ends_no_check(tmp_path: Path, data: dict[str, Any], key: str, value: Any) -> None:
    """The record cannot be read, which costs a few lines; the one beside it is checked."""
    put(tmp_path, data, **{key: value})
    (tmp_path / "other.json").write_text(json.dumps(data))
    result = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert result.exit_code == 2, result.output
    assert "1 records hold" in result.output
    assert key in result.output
    assert len(result.output) < 5000
    assert not CONTROL.search(result.output)


@pytest.mark.parametrize("question", ["../../../outside", "/tmp/outside", "a/b", "..", "a\\b"])
def test_a_question_leads_to_no_other_folder(tmp_path: Path, data: dict[str, Any], question: str) -> None:
    """It is part of a file's name where the record is written again."""
    with pytest.raises(InputError, match="question"):
        records.read(put(tmp_path, data, method="not_here", question=question))


WORDS = ("message", "method", "solver_version", "host", "bound_proof", "instance", "toolkit_version", "termination")


@pytest.mark.parametrize("key", WORDS)
@pytest.mark.parametrize("command", ["check", "show"])
def test_no_word_of_a_record_reaches_the_terminal_as_a_command(
    tmp_path: Path, data: dict[str, Any], key: str, command: str
) -> None:
    path = put(tmp_path, data, **{key: f"begin {ESCAPES} end"})
    result = CliRunner().invoke(app, [command, str(path)])
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit), result.exception
    assert result.output
    assert not CONTROL.search(result.output)
