"""Records: whole or not there at all, read with every fault named, written as exactly the JSON they hold."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth import api
from synth.errors import InputError
from synth.records import record as records
from synth.records.optimality import gap
from synth.records.record import Record
from synth.text import files as textfile
from synth.text.files import dumps


def sample(packed: dict[str, Any] | None = None, **changes: Any) -> Record:
    data: dict[str, Any] = {
        "format": "synth-record/1", "family": "xtree", "instance": "t", "instance_file": "t.json",
        "instance_sha256": "0",
        "method": "pull", "kind": "reference", "solver": None, "options": {"seed": 0}, "termination": "finished",
        "objective": {"name": "timesteps", "unit": "timesteps", "sense": "minimise", "value": 3.0}, "bound": None,
        "verified": {"ok": True, "facts": {}, "faults": []}, "seconds": {"build": 0.0, "solve": 0.0, "check": 0.0},
        "solution": None, "solution_file": None, "message": None,
    }  # fmt: skip
    return Record(data | changes, packed)


def arrays(size: int, value: int = 1) -> dict[str, Any]:
    return {"step": np.full(size, value, np.int32), "link": np.arange(size, dtype=np.int32)}


SMALL, LARGE = 3, records.INLINE_LIMIT  # two arrays of that size


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("size", [0, SMALL, records.INLINE_LIMIT // 2, records.INLINE_LIMIT // 2 + 1, LARGE])
@pytest.mark.parametrize("compressed", [True, False])
def test_round_trip(tmp_path: Path, size: int, compressed: bool) -> None:
    """Exactly INLINE_LIMIT numbers still stand in the JSON; one array element more puts all beside it."""
    path = tmp_path / "deep" / "pull.json"
    written = records.write(sample(arrays(size)), path, compressed=compressed)
    beside = 2 * size > records.INLINE_LIMIT
    assert len(contents(path.parent)) == (2 if beside else 1)
    assert (written.data["solution_file"] is not None) == beside
    back = records.read(path)
    assert back.packed is not None
    for key, array in arrays(size).items():
        assert np.array_equal(back.packed[key], array)
    assert back.data == json.loads(path.read_text())
    assert (back.value, back.bound, back.ok) == (3.0, None, True)


@pytest.mark.parametrize("low", [0, -1, -(2**15) - 1, -(2**31) - 1, -(2**63)])
@pytest.mark.parametrize("high", [0, 255, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_whole_numbers_come_back_exactly(tmp_path: Path, low: int, high: int) -> None:
    """Signed numbers beside numbers above 2^32 were stored as floats, which hold 53 bits."""
    values = np.array([low, high] * records.INLINE_LIMIT, dtype=np.int64)
    records.write(sample({"step": values}), tmp_path / "pull.json")
    back = records.read(tmp_path / "pull.json").packed
    assert back is not None
    assert back["step"].dtype.kind in "iu"
    assert np.array_equal(back["step"], values)


def test_old_solution_files_are_cleaned_up(tmp_path: Path) -> None:
    """A rewritten record leaves one .npz, its own; when the new one is small, none; neighbours keep theirs."""
    path, neighbour = tmp_path / "ilp.json", tmp_path / "ilp-highs.json"
    records.write(sample(arrays(LARGE, 7)), neighbour)
    for value in (1, 2, 2):
        records.write(sample(arrays(LARGE, value)), path)
        assert len(list(tmp_path.glob("ilp.*.npz"))) == 1
        packed = records.read(path).packed
        assert packed is not None
        assert packed["step"][0] == value
    records.write(sample(arrays(SMALL)), path)
    assert list(tmp_path.glob("ilp.*.npz")) == []
    packed = records.read(neighbour).packed
    assert packed is not None
    assert packed["step"][0] == 7


class Interruption:
    """Fails the n-th call of a function, passes the others through."""

    def __init__(self, real: Callable[..., Any], error: BaseException, at: int) -> None:
        self.real, self.error, self.at, self.calls = real, error, at, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.real(*args, **kwargs)


FULL_DISK = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [FULL_DISK, KeyboardInterrupt()], ids=["full disk", "Ctrl-C"])
@pytest.mark.parametrize("function", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize(("old", "new", "at"), [(SMALL, SMALL, 1), (LARGE, LARGE, 1), (LARGE, LARGE, 2),
(SMALL, LARGE, 2),
                                                (0, LARGE, 2)])  # fmt: skip
def test_a_failed_write_leaves_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, function: str, old: int, new: int, at: int
) -> None:
    """Whichever of the two files fails, and at whatever point: the folder is what it was, byte for byte.

    ``old`` 0 stands for no old record: then the folder stays empty.
    """
    path = tmp_path / "pull.json"
    if old:
        records.write(sample(arrays(old, 1)), path)
    before = contents(tmp_path)
    monkeypatch.setattr(os, function, Interruption(getattr(os, function), error, at))
    with pytest.raises(type(error)):
        records.write(sample(arrays(new, 2)), path)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    records.write(sample(arrays(new, 2)), path)  # and the next attempt is as good as any
    packed = records.read(path).packed
    assert packed is not None
    assert np.asarray(packed["step"]).tolist() == [2] * new


def test_a_disk_that_fills_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream takes half of the bytes and then reports ENOSPC."""
    path = tmp_path / "pull.json"
    records.write(sample(arrays(SMALL, 1)), path)
    before = contents(tmp_path)
    real = os.fdopen

    class Filling:
        def __init__(self, handle: int, mode: str) -> None:
            self.stream = real(handle, mode)

        def __enter__(self) -> Filling:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()

        def write(self, content: bytes) -> int:
            self.stream.write(content[: len(content) // 2])
            self.stream.flush()
            raise FULL_DISK

    monkeypatch.setattr(os, "fdopen", Filling)
    with pytest.raises(OSError, match="No space left"):
        records.write(sample(arrays(SMALL, 2)), path)
    assert contents(tmp_path) == before


def test_rewriting_the_same_solution_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old and new record share one .npz (the name is its hash): cleaning up after a failure must not take it away."""
    path = tmp_path / "pull.json"
    records.write(sample(arrays(LARGE)), path)
    monkeypatch.setattr(os, "replace", Interruption(os.replace, FULL_DISK, 2))
    with pytest.raises(OSError, match="No space left"):
        records.write(sample(arrays(LARGE), message="again"), path)
    packed = records.read(path).packed
    assert packed is not None
    assert len(packed["step"]) == LARGE


def test_leftovers_of_a_killed_writer(tmp_path: Path) -> None:
    """SIGKILL leaves temporary files; those of this record go, with its .npz's, those of others stay."""
    path = tmp_path / "ilp.json"
    records.write(sample(), path)
    keep = contents(tmp_path)
    for name in (".ilp.abc.tmp", ".ilp.0123456789ab.xyz.tmp"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".ilp-highs.abc.tmp").write_text("another run's")
    textfile.remove_leftovers(path)
    assert contents(tmp_path) == keep | {".ilp-highs.abc.tmp": b"another run's"}


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """No proper prefix of a record is a record (the final newline aside)."""
    path = tmp_path / "pull.json"
    records.write(sample(arrays(SMALL)), path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"pull\.json"):
            records.read(path)


@pytest.mark.parametrize("keep", [0, 1, 10, 100, 0.5, 0.9, 0.999])
def test_a_truncated_solution_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "pull.json"
    blob = tmp_path / records.write(sample(arrays(LARGE)), path).data["solution_file"]
    whole = blob.read_bytes()
    blob.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(InputError, match="cannot be read"):
        records.read(path)


def test_a_corrupt_solution_file_is_refused(tmp_path: Path) -> None:
    """Flipped bytes anywhere, another file format, or no file at all: one message, never an exception of zlib's."""
    path = tmp_path / "pull.json"
    blob = tmp_path / records.write(sample(arrays(LARGE)), path).data["solution_file"]
    whole = blob.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        blob.write_bytes(bytes(broken))
        try:
            packed = records.read(path).packed
        except InputError:
            continue
        # bytes that mean nothing (a time stamp in the zip) may flip; the numbers must be the right ones then
        assert packed is not None
        assert all(np.array_equal(packed[key], array) for key, array in arrays(LARGE).items())
    np.save(tmp_path / "plain.npy", np.arange(3))
    for content in (b"no zip", (tmp_path / "plain.npy").read_bytes()):
        blob.write_bytes(content)
        with pytest.raises(InputError):
            records.read(path)
    blob.unlink()
    with pytest.raises(InputError):
        records.read(path)


@pytest.mark.parametrize("name", ["pull.npz", "pull.000000000000.npz", "pull.{}.npz.npz", "{}.npz"])
def test_a_solution_file_whose_name_is_not_that_of_its_hash_is_refused(tmp_path: Path, name: str) -> None:
    """Also where the record states that name; the file may be called anything before the hash."""
    path = tmp_path / "pull.json"
    blob = tmp_path / records.write(sample(arrays(LARGE)), path).data["solution_file"]
    digits = blob.name.split(".")[1]
    for stated, fits in ((name.format(digits), False), (f"other.{digits}.npz", True)):
        (tmp_path / stated).write_bytes(blob.read_bytes())
        path.write_text(json.dumps(json.loads(path.read_text()) | {"solution_file": stated}))
        if fits:
            assert records.read(path).packed is not None
            continue
        with pytest.raises(InputError, match=f"must end in .{digits}.npz, after the hash of its contents"):
            records.read(path)


@pytest.mark.parametrize("name", ["../other.npz", "/etc/passwd", "", ".", "..", "a/b.npz", 5, ["x"]])
def test_a_solution_file_elsewhere_is_refused(tmp_path: Path, name: object) -> None:
    path = tmp_path / "pull.json"
    path.write_text(json.dumps(sample(solution_file=name).data))
    with pytest.raises(InputError):
        records.read(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "5", '"synth-record/1"', '{"format": "synth-instance/1"}',
                                  '{"format": "synth-record/1"}', '{"format": "synth-record/1", "format": "x"}', "\x00",
                                  '{"a": ' * 100_000])  # fmt: skip
def test_files_that_are_no_records(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"x\.json"):
        records.read(path)


def test_every_missing_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for key in sample().data:
        if key != "format":
            path.write_text(json.dumps({k: v for k, v in sample().data.items() if k != key}))
            with pytest.raises(InputError, match=f"missing: {key}$"):
                records.read(path)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A real record of a ring of 4 nodes (allgather, 2 timesteps by `pull`) and one of its bound beside it."""
    folder = tmp_path_factory.mktemp("solved")
    raw = {"family": "xtree", "name": "r", "source": "test", "network": {"kind": "ring", "nodes": 4}, "chunks": 1}
    (folder / "r.json").write_text(json.dumps({"format": "synth-instance/1", **raw}))
    with chdir(folder):  # so that the records name the file
        instance = synth.read(folder / "r.json")
        api.solve(instance, "bound", results=folder)
        return api.solve(instance, "pull", results=folder)


def verdict_on(record: Record, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> list[str]:
    """What `check` finds in the record with ``change`` applied; an InputError counts as found, other errors do not."""
    assert record.path is not None
    data = json.loads(record.path.read_text())
    data["instance_file"] = str(record.path.parents[2] / "r.json")
    change(data)
    path = tmp_path / "tampered.json"
    path.write_text(json.dumps(data))
    try:
        return api.check(path).faults
    except InputError as error:
        return [str(error)]


def at(*keys: str) -> Callable[[object], Callable[[dict[str, Any]], None]]:
    def with_value(value: object) -> Callable[[dict[str, Any]], None]:
        def change(data: dict[str, Any]) -> None:
            for key in keys[:-1]:
                data = data[key]
            data[keys[-1]] = value

        return change

    return with_value


def test_the_untouched_record_passes(solved: Record, tmp_path: Path) -> None:
    assert verdict_on(solved, tmp_path, lambda data: None) == []
    assert solved.value == 2.0


@pytest.mark.parametrize(
    "change",
    [
        at("objective", "value")(1.0), at("objective", "value")(3.0), at("objective", "value")(None),
        at("objective", "value")(math.nan), at("objective", "value")(math.inf), at("objective", "value")("two"),
        at("objective")(None), at("objective")([]), at("objective")({}), at("verified")(None),
        at("bound")(3.0), at("bound")(math.inf), at("bound")(math.nan), at("bound")("high"), at("bound")([2]),
        at("solution")(None), at("solution")([1, 2]), at("solution")("all"), at("solution")({}),
        at("solution", "step")([1, 1]), at("solution", "step")("1"), at("solution", "step")(None),
        at("solution", "link")([0] * 12), at("solution", "chunk")([0] * 12), at("solution", "chunk")([0.5] * 12),
        at("solution", "chunk")([2**40] * 12), at("solution", "chunk")([[0]] * 12), at("solution", "adds")([1] * 12),
        at("solution", "step")([2**31 - 1] * 12), at("instance_sha256")("0" * 64), at("instance_sha256")(None),
        at("instance_file")(None), at("instance_file")("gone.json"), at("instance_file")(5), at("instance_file")(""),
        at("family")("nope"), at("family")(None), at("family")(["xtree"]), at("kind")("bound"), at("format")("x"),
        at("solution_file")("gone.npz"),
    ],
)  # fmt: skip
def test_tampered_records_are_caught(solved: Record, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    assert verdict_on(solved, tmp_path, change) != []


@pytest.mark.parametrize(
    "change",
    [
        at("bound")(3.0), at("bound")(math.nan), at("bound")(math.inf), at("solution", "inside")([0, 1, 2, 3]),
        at("solution", "binding")("faith"), at("solution")(None), at("solution")({}), at("solution")([1]),
        at("solution")("cut"), at("objective", "value")(2.0),
    ],
)  # fmt: skip
def test_tampered_bounds_are_caught(solved: Record, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A record of kind bound stands on its certificate alone: without one, its bound follows from nothing."""
    assert solved.path is not None
    bound = records.read(solved.path.with_name("bound.json"))
    assert verdict_on(bound, tmp_path, lambda data: None) == []
    assert verdict_on(bound, tmp_path, change) != []


def test_a_changed_instance_is_noticed(solved: Record, tmp_path: Path) -> None:
    """The same name with other content (here only the chunk size) is not the instance that was solved."""
    assert solved.path is not None
    original = (solved.path.parents[2] / "r.json").read_text()
    (tmp_path / "r.json").write_text(original.replace('"chunks": 1', '"chunks": 1, "chunk_bytes": 5'))
    change = at("instance_file")(str(tmp_path / "r.json"))
    assert any("has changed since the run" in fault for fault in verdict_on(solved, tmp_path, change))


ODD = st.one_of(
    st.text(),
    st.sampled_from(["\0", "\0000\0", '"\0', 'a"\0001\0"', "\\u0000", '"\\u00000\\u0000"', "\n", "\ud800", "é"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), ODD)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(ODD, inner, max_size=4)),
    max_leaves=8,
)


@pytest.mark.long
@given(data=st.dictionaries(ODD, JSON, max_size=5), one_line=st.booleans())
@settings(max_examples=some(150), deadline=None)
def test_dumps_is_json(data: dict[str, Any], one_line: bool) -> None:
    """Folding long lists onto one line changes the layout only, whatever characters the texts hold."""
    text = dumps(data, one_line)
    assert json.loads(text) == data
    assert not one_line or "\n" not in text


def test_dumps_plain_values() -> None:
    """numpy numbers and arrays and paths become what they mean; NaN and infinity are refused, not written."""
    data = {"a": np.int64(3), "b": np.float64(0.5), "c": np.arange(2), "d": Path("x") / "y", "e": [np.bool_(0), (1,)]}
    assert json.loads(dumps(data)) == {"a": 3, "b": 0.5, "c": [0, 1], "d": "x/y", "e": [False, [1]]}
    for bad in (math.nan, math.inf, [math.nan], np.array([math.inf])):
        with pytest.raises(ValueError, match="JSON"):
            dumps({"a": bad})
    with pytest.raises(TypeError, match="object"):
        dumps({"a": object()})


def test_lists_stand_on_one_line() -> None:
    text = dumps({"solution": {"step": list(range(100))}})
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [
        (5.0, 4.0, 0.2), (4.0, 4.0, 0.0), (None, 4.0, None), (4.0, None, None), (None, None, None), (0.0, 0.0, 0.0),
        (0.0, -1.0, math.inf), (-4.0, -5.0, 0.25), (1e12, 1e12 - 1, 0.0), (1.0, 1.0 - 1e-12, 0.0), (2.0, -2.0, 2.0),
    ],
)  # fmt: skip
def test_gap(value: float | None, bound: float | None, expected: float | None) -> None:
    """(value - bound) / |value|: (5 - 4) / 5 = 0.2; equal up to rounding is 0; nothing to compare is None."""
    assert gap(value, bound) == (None if expected is None else pytest.approx(expected))


def test_paths() -> None:
    base = Path("results")
    assert records.record_path(base, "xtree", "r", "pull", None) == base / "xtree" / "r" / "pull.json"
    assert records.record_path(base, "xtree", "r", "ilp", "highs") == base / "xtree" / "r" / "ilp-highs.json"
