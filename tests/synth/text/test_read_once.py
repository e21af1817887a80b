"""Every input file is read once: what comes from a pipe makes the instance that the same text in a file makes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from command import SYNTH

import synth
from synth.family import family_names, get_family
from synth.method import load
from synth.study.definition import load as load_study
from synth.text.input_file import InputFile

BOX = {"machine": "dgx-a100", "boxes": 2, "bytes": "1MiB"}
LINKS = "src,dst,bandwidth,latency\n0,1,1GB/s,1us\n1,2,1GB/s,1us\n2,0,1GB/s,1us\n"
RATES = {"port_bandwidth": 1e9, "alpha": 0, "delta": 0, "reconfiguration_delay": 0, "ports": 1}
MACHINE = {
    "format": "synth-machine/1", "name": "m", "source": "test", "switching": "cut_through", "classes": ["link"] * 2,
    **{key: [] for key in ("given", "assumed", "unknown", "left_out")},
    "network": {
        "kind": "links", "nodes": 2,
        "links": [{"src": u, "dst": 1 - u, "bandwidth": 1e9, "latency": 0.0} for u in (0, 1)],
    },
}  # fmt: skip
STEP = synth.make("step", stages=2, microbatches=2).to_json()
MESHES = {  # three files of one question
    "from": 'axes = { tp = 2 }\nranks = "0-1"\n', "to": 'axes = { tp = 2 }\nranks = "2-3"\n',
    "tensors": 'name,shape,dtype,from,to\nw,4,fp32,"tp=0","tp=0"\n',
}  # fmt: skip
RESHARD = {"machine": "dgx1", "collective": "reshard", **MESHES}
BLOCK = {"d": 2, "layers": 1, "columns": 2, "servers": 2}
TEXTS: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {
    ("fabric", "failed"): [(BOX, "link 0/gpu0 0/nvswitch\n")],
    ("fabric", "demand"): [({"machine": "dgx1", "collective": "demand"}, "src,dst,bytes\n0,1,64KB\n")],
    ("fabric", "collectives"): [
        ({"machine": "dgx1", "collective": "several"}, "name,collective,bytes,ranks\na,allgather,64KB,0-3\n")
    ],
    ("fabric", "ready"): [({"machine": "dgx1", "bytes": "64KB", "collective": "allgather"}, "rank,ready\n3,1ms\n")],
    **{("fabric", key): [({name: RESHARD[name] for name in RESHARD if name != key}, MESHES[key])] for key in MESHES},
    ("fabric", "links"): [({"bytes": 3}, LINKS)],
    ("fabric", "machine"): [({"bytes": 2}, json.dumps(MACHINE))],
    ("xtree", "links"): [({}, LINKS)],
    ("harvest", "steps"): [
        (RATES | {"gpus": 3}, json.dumps([{"bytes": 5, "shift": 1}])),
        (RATES, "0,2\n3,0\n"),
    ],
    ("bine", "jobs"): [({}, "a,4,g0x2 g1x2\nb,3,g0x1 g1x2\n")],
    ("bine", "nodes"): [({"hosts": "h0,h1,h2\n"}, "h0,g0\nh1,g0\nh2,g1\n")],
    ("bine", "hosts"): [({"nodes": "h0,g0\nh1,g0\nh2,g1\n"}, "h0,h1,h2\n")],
    ("mlfm", "subset"): [({"d": 2}, "0 0 0\n0 1 0\n"), ({"d": 2}, "[[0, 0, 0], [0, 1, 0]]")],
    ("mlfm", "demand"): [({"d": 2}, "0 0 0 0 1 0\n"), ({"d": 2}, "[[0, 0, 0, 0, 1, 0]]")],
    ("topology", "plant"): [({}, '{"kind": "degree", "nodes": 4, "degree": 2}')],
    ("step", "file"): [
        (
            {},
            'layers = 1\nactivation = 1e6\nparameters = 1e6\nforward = "1ms"\n[links]\na = { bandwidth = "1GB/s" }\n',
        )
    ],
    ("step", "kernels"): [({}, "stream,start_us,dur_us,class,kernel\n7,0,5,gemm,a\n27,5,3,comm,b\n")],
    ("step", "workloads"): [
        (
            {"workload": "a", "group": 8},
            "file,compute_fwd_ms,compute_input_grad_ms,compute_weight_grad_ms,phase,collective,bytes,count\n"
            "a.txt,1,2,3,fwd,ALLREDUCE,8000,2\n",
        )
    ],
    ("step", "step"): [({"what_if": "compute=2x"}, STEP)],
    ("mlfm", "failed"): [(BLOCK, "server 0 0 0\n"), (BLOCK, '{"servers": [[0, 0, 0]]}')],
}
CASES = [(*key, others, text) for key, many in TEXTS.items() for others, text in many]
BESIDE = {
    ("bine", "nodes"): ("hosts",),
    ("bine", "hosts"): ("nodes",),
    **{("fabric", key): tuple(other for other in MESHES if other != key) for key in MESHES},
}  # keys of the others that are files too


@contextmanager
def pipe(text: str) -> Iterator[str]:
    """The path of a pipe that holds the text once, as the shell's ``<(…)`` gives it: a second reader finds nothing."""
    out, into = os.pipe()

    def fill() -> None:
        with os.fdopen(into, "wb") as stream:
            stream.write(text.encode())

    writer = threading.Thread(target=fill)
    writer.start()
    try:
        yield f"/dev/fd/{out}"
    finally:
        writer.join()
        os.close(out)


def test_every_key_that_takes_a_file_is_tried() -> None:
    """By the keys' own types, of every family there is."""
    taking = set()
    for family in family_names():
        fields = load(get_family(family).keys).model_fields
        taking |= {(family, key) for key, field in fields.items() if InputFile in get_args(field.annotation)}
    taking -= {("fabric", "topology")}  # a record, whose arrays and instance are files beside it
    taking -= {("step", "traces"), ("step", "groups")}  # files of bytes, one a rank, and what belongs to them
    taking -= {("step", "priced_by")}  # a folder of records
    assert {key for key in taking if key[0] not in ("faulty", "toy_broadcast")} == set(TEXTS)


@pytest.mark.parametrize(("family", "key", "others", "text"), CASES)
def test_a_pipe_makes_what_a_file_makes(
    family: str, key: str, others: dict[str, Any], text: str, tmp_path: Path
) -> None:
    others = dict(others)
    for other in BESIDE.get((family, key), ()):
        (tmp_path / other).write_text(others[other])
        others[other] = tmp_path / other
    (tmp_path / "pipe").write_text(text)  # a host list's job has the file's name
    regular = synth.make(family, name="x", **others, **{key: f"{tmp_path}/pipe"})
    with pipe(text) as path:
        piped = synth.make(family, name="x", **others, **{key: path})
    assert piped.model_dump(exclude={"source"}) == regular.model_dump(exclude={"source"})
    if key == "failed":
        assert piped.model_dump()["failed"] != synth.make(family, name="x", **others).model_dump()["failed"]


@pytest.mark.parametrize(("family", "key", "others", "text"), CASES)
def test_no_path_is_opened_twice(
    family: str, key: str, others: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a wrong file too: what is said of it comes from one reading."""
    opened: list[str] = []
    honest: Callable[..., Any] = Path.open

    def counted(path: Path, *args: Any, **more: Any) -> Any:
        opened.append(str(path))
        return honest(path, *args, **more)

    others = dict(others)
    for other in BESIDE.get((family, key), ()):
        (tmp_path / other).write_text(others[other])
        others[other] = tmp_path / other
    monkeypatch.setattr(Path, "open", counted)
    for content in (text, "\x00nonsense, of no kind\n"):
        file = tmp_path / f"file{len(content)}"
        file.write_bytes(content.encode())
        opened.clear()
        try:
            synth.make(family, **others, **{key: str(file)})
        except synth.errors.InputError:
            assert content != text
        assert opened.count(str(file)) == 1


@pytest.mark.long
@pytest.mark.parametrize("source", ["pipe", "-"])
def test_import_takes_a_pipe_and_standard_input(source: str, tmp_path: Path) -> None:
    """A machine of links, through both, is the file's."""
    (tmp_path / "l.csv").write_text(LINKS)
    command = [SYNTH, "import"]
    more = ["bytes=3", "name=x", "--name", "m", "-o", "-", "--format", "csv"]
    wanted = subprocess.run([*command, "l.csv", *more], cwd=tmp_path, capture_output=True, text=True, check=True)
    if source == "-":
        done = subprocess.run([*command, "-", *more], cwd=tmp_path, input=LINKS, capture_output=True, text=True)
    else:
        with pipe(LINKS) as path:
            number = int(path.rpartition("/")[2])
            run = [*command, path, *more]
            done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, pass_fds=[number])
    assert done.returncode == 0, done.stderr
    one, other = json.loads(done.stdout), json.loads(wanted.stdout)
    assert one.pop("source") != other.pop("source")
    assert one == other


def test_a_study_from_a_pipe(tmp_path: Path) -> None:
    text = 'name = "s"\n[[generate]]\nfamily = "xtree"\nparameters = { network = "ring", nodes = 3 }\n'
    with pipe(text) as path:
        study = load_study(path)
    assert (study.name, study.text, len(study.generate)) == ("s", text, 1)


def test_an_instance_from_a_pipe_is_refused_where_it_would_be_read_again(tmp_path: Path) -> None:
    from synth.execution.runs import expand_paths

    instance = synth.make("xtree", network="ring", nodes=3)
    with pipe(instance.to_json()) as path:
        with pytest.raises(synth.errors.InputError, match="is no regular file: every run and check reads it again"):
            expand_paths([Path(path)])
        assert synth.read(path).model_dump() == instance.model_dump()


def test_an_endless_file_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.text.input_file.MOST_BYTES", 2**16)
    with pytest.raises(synth.errors.InputError, match="larger than 65,536 bytes"):
        _ = InputFile("/dev/zero").data
