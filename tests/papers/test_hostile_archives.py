"""Both checkers on files that would take gigabytes: each says so in a line, within memory that is limited."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import hostile_archives
import pytest
from two_checkers import ROOT, VERIFY

import synth
from synth import api
from synth.errors import InputError
from synth.records import record as records

INSTANCE = ROOT / "instances" / "xtree" / "ring-8-c1.json"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """The files, and what the second checker has to say of each."""
    folder = tmp_path_factory.mktemp("archives")
    made = api.solve(synth.read(INSTANCE), "pull", results=folder)
    assert made.path is not None
    record: dict[str, Any] = json.loads(made.path.read_text())
    record["instance_text"] = INSTANCE.read_text()
    (folder / "hostile").mkdir()
    good = folder / "hostile" / "good.json"
    good.write_text(json.dumps(record))
    return {good: "accept", **hostile_archives.write(folder / "hostile", record)}


def limited(megabytes: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the words in a process that may have so much memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))

    return subprocess.run([*map(str, words)], preexec_fn=limit, capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_the_second_checker_has_a_line_for_each(expected: dict[Path, str]) -> None:
    done = limited(400, sys.executable, VERIFY, *expected)
    assert not done.stderr, done.stderr[-2000:]
    assert done.returncode == 1
    lines = done.stdout.split("\n")[: len(expected)]
    said = [line[:11].strip() for line in lines]
    assert said == list(expected.values()), "\n".join(line[:200] for line in lines)
    assert max(map(len, lines)) < 2500


@pytest.mark.long
def test_a_record_whose_arrays_would_take_gigabytes_is_refused_in_a_line(expected: dict[Path, str]) -> None:
    """By what synth itself reads, too; and every name of a file of arrays that is not that of its hash."""
    for path, verdict in expected.items():
        if verdict == "accept" or path.name.startswith("is-much-") or path.name.startswith("forged"):
            continue  # synth reads as many bytes; the other is a record of an unknown family
        with pytest.raises(InputError) as caught:
            records.read(path)
        assert len(str(caught.value).splitlines()) == 1, path
        if "-None" in path.name or "-0000" in path.name:
            assert "after the hash of its contents" in str(caught.value)


@pytest.mark.long
def test_synth_reads_them_within_limited_memory(expected: dict[Path, str]) -> None:
    files = [str(path) for path in expected if not path.name.startswith(("is-much-", "gone"))]
    done = limited(3000, Path(sys.executable).with_name("synth"), "check", *files)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode == 2
    assert "1 records hold" in done.stdout
    assert f"{len(files) - 1} could not be read" in done.stdout
    assert not any(line.startswith("ok     name") for line in done.stdout.splitlines())
