"""Collections: records in one file read like records in a folder, whatever else the file holds."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.execution.runs import Request, expand
from synth.records import array_file, packed
from synth.records import folder as results
from synth.records import record as records
from synth.records.record import Record
from synth.study.table import build, read_records

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "instances" / "xtree"
RUN = CliRunner()


def synth_command(*words: str | Path, code: int = 0) -> str:
    done = RUN.invoke(app, [str(word) for word in words])
    assert (2 if isinstance(done.exception, InputError) else done.exit_code) == code, done.output
    return done.output + (str(done.exception) if done.exception else "")


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two instances, three methods, one record with its arrays in a file beside it."""
    monkeypatch.setattr(records, "INLINE_LIMIT", 60)
    for name in ("ring-8-c1", "equimesh-2x3-c1"):
        for method in ("bound", "pull", "xtree"):
            synth.solve(synth.read(SHIPPED / f"{name}.json"), method, results=tmp_path / "r")
    assert list((tmp_path / "r").rglob("*.npz"))
    return tmp_path / "r"


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def good(*paths: Path) -> list[Record]:
    found = list(results.read_all(paths))
    assert all(isinstance(record, Record) for record in found), found
    return [record for record in found if isinstance(record, Record)]


def faults(*paths: Path) -> list[str]:
    return [str(error) for error in results.read_all(paths) if isinstance(error, InputError)]


def plain(record: Record) -> Any:
    """All that a record says; the name of its solution file aside."""
    packed = {key: np.asarray(value).tolist() for key, value in (record.packed or {}).items()}
    return {**record.data, "solution": packed, "solution_file": None}, record.path


def test_arrays_are_opened_and_instances_read_once(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many records of a collection hold arrays, and however many are of one instance."""
    text = (SHIPPED / "ring-8-c1.json").read_text()
    for i in range(5):
        instance = sweep.parent / "many" / f"ring-{i}.json"
        instance.parent.mkdir(exist_ok=True)
        instance.write_text(text)
        synth.solve(synth.read(instance), "pull", results=sweep / str(i))
    results.pack(sweep)
    opened, parsed = [], []
    load, read = packed.ArrayFile, records.from_bytes
    monkeypatch.setattr(packed, "ArrayFile", lambda file: (opened.append(file), load(file))[1])
    monkeypatch.setattr(records, "from_bytes", lambda text, source: (parsed.append(text), read(text, source))[1])
    for record in good(sweep):
        record.find_instance()
    assert len(opened) == 1
    assert len(parsed) <= 2 * len(set(parsed)) < 11  # out of a file and out of a record


def test_a_forked_process_opens_the_arrays_itself(sweep: Path) -> None:
    """Two processes with one open file would move each other's position in it."""
    results.pack(sweep)
    before = [plain(record) for record in good(sweep)]
    process = os.fork()
    if process == 0:
        os._exit([plain(record) for record in good(sweep)] != before or packed._archive.cache_info().misses < 2)
    assert [plain(record) for record in good(sweep)] == before
    assert os.waitpid(process, 0)[1] == 0


def test_packing_changes_nothing_but_the_files(sweep: Path) -> None:
    before = good(sweep)
    assert results.pack(sweep) == 6
    npz = next(name for name in files(sweep) if name.endswith(".npz"))
    assert files(sweep) == {"records.jsonl", npz}
    after = good(sweep)
    assert [plain(record) for record in after] == [plain(record) for record in before]
    assert all(synth.check(record).ok for record in after)
    content = {path: path.read_bytes() for path in sweep.iterdir()}
    assert results.pack(sweep) == 0
    assert {path: path.read_bytes() for path in sweep.iterdir()} == content


@pytest.mark.parametrize("address", ["xtree/ring-8-c1", "records.jsonl/xtree/ring-8-c1", "xtree/ring-8-c1/pull.json",
                                     "records.jsonl/xtree/ring-8-c1/pull.json", "records.jsonl", "."])  # fmt: skip
def test_a_collection_is_used_like_a_folder(sweep: Path, address: str) -> None:
    results.pack(sweep)
    count = {"ring-8-c1": 3, "pull.json": 1}.get(Path(address).name, 6)
    found = good(sweep / address)
    assert len(found) == count
    assert f"{count} records hold" in synth_command("check", sweep / address)
    if count == 1:
        assert found[0].path == sweep / "xtree/ring-8-c1/pull.json"
        assert "method pull" in synth_command("show", sweep / address)
        assert synth_command("show", sweep / address, "--csv").startswith("step,src,dst")


def test_a_file_of_its_own_hides_the_packed_record(sweep: Path) -> None:
    """And takes its place when it is packed in turn; a run finds its record either way."""
    results.pack(sweep)
    asked = expand([synth.read(SHIPPED / "ring-8-c1.json")], Request(["pull"]), sweep)
    [run] = asked.runs()
    held = run.finished_record()
    assert held is not None
    records.write(Record({**held.data, "message": "newer"}, held.packed), run.path)
    assert run.path.is_file()
    for _ in range(2):
        assert len(good(sweep)) == 6
        found = run.finished_record()
        assert found is not None
        assert found["message"] == "newer"
        results.pack(sweep)
        assert not run.path.exists()
    assert abs(results.written_at(run.path) - (sweep / "records.jsonl").stat().st_mtime) < 1e-6


def test_the_nearest_collection_takes_a_record(sweep: Path) -> None:
    part = sweep / "part"
    shutil.copytree(sweep / "xtree" / "ring-8-c1", part / "xtree" / "ring-8-c1")
    assert (results.pack(part), results.pack(sweep)) == (3, 6)
    for method in ("pull", "bound"):
        shutil.copytree(sweep, sweep.parent / method)
        records.write(records.read(sweep / f"part/xtree/ring-8-c1/{method}.json"), part / "xtree/other/pull.json")
        results.pack(sweep)
        assert len(good(part)) == 4
        assert len(good(sweep)) == 10


def test_solve_goes_on_and_judges_by_packed_records(sweep: Path) -> None:
    """The bound of a packed record is the table's; --resume runs nothing again."""
    results.pack(sweep)
    words = ("solve", SHIPPED / "ring-8-c1.json", "--results", sweep, "-m", "pull")
    assert "1 of 1 runs were done before" in synth_command(*words, "--resume")
    assert not (sweep / "xtree").exists()
    run = synth_command(*words[:-1], "tacos")
    assert "certified" in run
    assert (sweep / "xtree/ring-8-c1/tacos.json").is_file()
    assert len(good(sweep)) == 7


def test_a_study_reads_packed_records(sweep: Path) -> None:
    folder = sweep.parent / "study"
    shutil.copytree(sweep / "xtree", folder / "records" / "seed0-60s" / "xtree")
    tables = [build("s", folder, read_records(folder))]
    results.pack(folder / "records")
    assert {path.suffix for path in (folder / "records").iterdir()} == {".jsonl", ".npz"}
    tables.append(build("s", folder, read_records(folder)))
    assert len(tables[0]) == 6
    assert tables[0].equals(tables[1])


def test_instances_made_for_a_page_go_into_their_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = synth.make("xtree", network="ring", nodes=4)
    (tmp_path / "r" / "instances").mkdir(parents=True)
    for name in ("ring.instance", "unused.instance"):
        (tmp_path / "r" / "instances" / name).write_text(made.to_json() + " " * (name == "unused.instance"))
    synth.solve(synth.read("r/instances/ring.instance"), "pull", results="r")
    results.pack(Path("r"))
    assert files(tmp_path / "r") == {"records.jsonl", "instances/unused.instance"}
    shutil.move("r", "elsewhere")
    [record] = good(Path("elsewhere"))
    assert record["instance_text"] == made.to_json()
    assert synth.check(record).ok
    line = (tmp_path / "elsewhere/records.jsonl").read_text()
    (tmp_path / "elsewhere/records.jsonl").write_text(line.replace("ring-4", "ring-5"))
    assert "its hash differs" in synth_command("check", "elsewhere", code=2)


def change(sweep: Path, number: int, edit: Callable[[dict[str, Any]], Any]) -> None:
    file = sweep / packed.NAME
    lines = file.read_text().splitlines()
    found = edit(json.loads(lines[number]))
    lines[number] = found if isinstance(found, str) else json.dumps(found)
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.long(after=7)
@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda data: "{", "line 3, column 2"),
        (lambda data: '{"a": 1, "a": 2}', "line 3: the key 'a' stands twice"),
        (lambda data: "\x00", "line 3, column 1"),
        (lambda data: "[" * 100_000, "line 3"),
        (lambda data: [1], "line 3: holds no record"),
        (lambda data: data | {"record_path": 5}, "line 3: record_path is missing or not a text"),
        (lambda data: data | {"record_path": "/etc/x.json"}, "line 3: record_path = '/etc/x.json': must be"),
        (lambda data: data | {"record_path": "../x.json"}, "line 3: record_path = '../x.json': must be"),
        (lambda data: data | {"record_path": "a/./x.json"}, "line 3: record_path = 'a/./x.json': must be"),
        (lambda data: data | {"record_path": "a/x\0.json"}, "line 3: record_path"),
        (lambda data: data | {"record_path": "a/x"}, "line 3: record_path = 'a/x': must be"),
        (lambda data: data | {"record_path": "xtree/equimesh-2x3-c1/bound.json"}, "stands in line 1 too"),
        (lambda data: {"record_path": data["record_path"], "format": "synth-record/1"}, "incomplete record, missing"),
        (lambda data: data | {"solution_file": "../x.npz"}, "must be a plain file name"),
        (lambda data: data | {"solution_file": "gone.npz"}, "gone.npz cannot be read"),
        (lambda data: data | {"solution_file": "records.jsonl"}, "cannot be read"),
        (lambda data: data | {"instance_text": 5}, "instance_text"),
        (lambda data: data | {"instance_text": "\ud800"}, "instance_text: not valid JSON"),
    ],
)  # fmt: skip
def test_one_wrong_line_is_one_message(sweep: Path, edit: Callable[[dict[str, Any]], Any], words: str) -> None:
    """The other five hold; packing refuses, and changes nothing."""
    results.pack(sweep)
    change(sweep, 2, edit)
    said = synth_command("check", sweep, code=2)
    assert words in said
    assert "records.jsonl" in said or "xtree.json" in said
    assert "5 records hold" in said
    assert "1 could not be read" in said


def test_packing_refuses_what_it_cannot_read(sweep: Path) -> None:
    results.pack(sweep)
    shutil.copytree(sweep, sweep.parent / "copy")
    change(sweep, 2, lambda data: "{")
    (sweep / "a.json").write_text("{}")
    before = {path: path.read_bytes() for path in sweep.iterdir()}
    said = synth_command("pack", sweep, code=2)
    assert "a.json: not a record" in said
    assert "line 3" in said
    assert {path: path.read_bytes() for path in sweep.iterdir()} == before


def test_arrays_that_are_too_large_are_not_read(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of two gigabytes of zeros packs into two megabytes; what is said before it is unpacked."""
    results.pack(sweep)
    [npz] = sweep.glob("*.npz")
    with zipfile.ZipFile(npz) as archive:
        name = archive.namelist()[0]
    monkeypatch.setattr(array_file, "MOST_BYTES", 100)
    [said] = [text for text in faults(sweep) if name.rpartition("/")[0] in text]
    assert "more than 100 bytes" in said


def test_a_damaged_file_of_arrays(sweep: Path) -> None:
    results.pack(sweep)
    [npz] = sweep.glob("*.npz")
    whole = npz.read_bytes()
    for content in (b"", whole[: len(whole) // 2], bytes(len(whole)), None):
        npz.unlink() if content is None else npz.write_bytes(content)
        said = faults(sweep)
        assert said
        assert all("cannot be read" in text for text in said)
        assert len(said) + sum(isinstance(one, Record) for one in results.read_all([sweep])) == 6


def test_a_collection_that_cannot_be_read(sweep: Path) -> None:
    """A folder of that name is no collection; bytes that are no text are wrong lines."""
    (sweep / "x" / packed.NAME).mkdir(parents=True)
    (sweep / "y").mkdir()
    (sweep / "y" / packed.NAME).write_bytes(b"\xff\xfe\x00\n\xff")
    said = faults(sweep)
    assert all("y/records.jsonl" in text for text in said if "x/records.jsonl" not in text)
    assert len(good(sweep / "xtree")) == 6


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupted_packing_loses_nothing(
    sweep: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, at: int
) -> None:
    """Whichever of the two files is not written: every record is where it was, byte for byte, and the next packing is
    as good as any. So also where a collection was there before."""
    for _ in range(2):
        before = {name: (sweep / name).read_bytes() for name in files(sweep)}
        real, calls = os.replace, 0

        def replace(*paths: Any, real: Callable[..., None] = real) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise error
            real(*paths)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            with pytest.raises(type(error)):
                results.pack(sweep)
        assert {name: (sweep / name).read_bytes() for name in files(sweep)} == before
        results.pack(sweep)
        instance = synth.read(SHIPPED / "ring-8-c1.json")
        synth.solve(instance, "pull", seed=len(files(sweep)) + at, results=sweep)


def test_packing_killed_before_the_old_files_went(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are there then; each record counts once, and the next packing goes on."""

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(results, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            results.pack(sweep)
    assert len(good(sweep)) == 6
    assert results.pack(sweep) == 6
    assert len(good(sweep)) == 6
    assert not (sweep / "xtree").exists()


def test_a_record_written_while_its_folder_is_packed_stays(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, path = packed.prepare, sweep / "xtree/ring-8-c1/pull.json"

    def late(*args: Any) -> packed.Prepared:
        made = real(*args)
        held = records.read(path)
        records.write(Record({**held.data, "message": "late"}, held.packed), path)
        return made

    monkeypatch.setattr(packed, "prepare", late)
    results.pack(sweep)
    assert path.is_file()
    assert records.read(path)["message"] == "late"
    assert len(good(sweep)) == 6


def test_the_built_documentation_among_results_holds_no_records(sweep: Path) -> None:
    """The README builds it into `results/site`; its search index is JSON. Elsewhere such a file is refused."""
    (sweep / "site/search").mkdir(parents=True)
    (sweep / "site/search/search_index.json").write_text("{}")
    with pytest.raises(InputError, match="not a record"):
        results.pack(sweep)
    (sweep / "site/objects.inv").write_text("")
    assert results.pack(sweep) > 0


def test_instances_beside_records_are_no_records(tmp_path: Path) -> None:
    """A tour's folder holds its instances too: they are neither packed nor in the way."""
    shutil.copytree(ROOT / "instances" / "tour", tmp_path / "instances")
    instance = synth.read(tmp_path / "instances" / "ring-12.json")
    synth.solve(instance, "bound", results=tmp_path / "records")
    assert results.pack(tmp_path) == 1
    assert (tmp_path / "instances" / "ring-12.json").is_file()
    [record] = results.read_all([tmp_path])
    assert not isinstance(record, InputError)
    assert record.bound == 3
