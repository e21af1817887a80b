"""`synth check`, `synth show` and `synth import` of other people's algorithms, as a person meets them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from exchange.small_algorithms import SMALL, edited, without, xml
from typer.testing import CliRunner

from synth.cli.main import app
from synth.errors import InputError

OUT, TWO = SMALL["allgather-out"], SMALL["allgather-two-blocks"]


def said(*words: object, code: int = 0) -> str:
    """What the command prints, errors included."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, InputError):
        assert code == 2
        return str(done.exception)
    assert done.exit_code == code, (done.output, done.exception)
    return " ".join(done.output.split())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in SMALL.items():
        (tmp_path / f"{name}.xml").write_text(text)
    (tmp_path / "own.xml").write_text(without(OUT, 0, 1, 0))
    (tmp_path / "race.xml").write_text(edited(TWO, 0, 0, 1, depid=-1, deps=-1))
    (tmp_path / "bad.xml").write_text("<algo")
    return tmp_path


def test_check(files: Path) -> None:
    text = said("check", files / "allgather-out.xml", files / "allreduce-ring.xml")
    assert "allgather out of place, 2 gpus, 4 thread blocks, 6 steps, 1 chunk a part, 1 channel, 2 messages" in text
    assert "executor azure takes it" in text
    assert text.endswith(
        "2 algorithms hold: no deadlock, no race, every output complete in every order they may run in."
    )
    text = said("check", files / "own.xml", files / "race.xml", files / "allgather-in.xml", code=1)
    assert "gpu 0, o[0]: must end with its own i[0]; it holds nothing" in text
    assert "race: it reads" in text or "race: it writes" in text
    assert "1 algorithm holds" in text
    assert "2 FAILED" in text
    assert "bad.xml: line 1: is no XML" in said("check", files / "bad.xml", code=2)


def test_check_with_a_wish(files: Path) -> None:
    said("check", files / "allreduce-in.xml", "--collective", "reduce")
    text = said("check", files / "reduce_scatter-out.xml", "--collective", "scatter", code=1)
    assert "reads i[0]; the buffer i of gpu 1 has 2 chunks, and really 0" in text
    assert "coll must be one of" in said("check", files / "allreduce-in.xml", "--collective", "gossip", code=2)
    assert "msccl: does not run gather" in said("check", files / "gather-in.xml", "--executor", "msccl", code=1)
    assert "unknown executor 'x'" in said("check", files / "gather-in.xml", "--executor", "x", code=2)
    assert "executor msccl refuses it: algo: does not run gather" in said("check", files / "gather-in.xml")
    assert "go with an algorithm" in said("check", files, "--executor", "azure", code=2)


def test_notes(files: Path) -> None:
    """Out of place, gpu 0 copies through its own input; 110 thread blocks do not fit an A100."""
    text = edited(SMALL["alltoall-out"], 0, 0, 1, dstbuf="i").replace("</tb>", "@", 1)
    row = text[: text.index("@")].rstrip().splitlines()[-1]
    more = row.replace('s="2"', 's="3"').replace('srcoff="0"', 'srcoff="1"').replace('dstoff="0"', 'dstoff="1"')
    idle = "".join(f'<tb id="{k}" send="-1" recv="-1" chan="0"/>\n' for k in range(1, 110))
    (files / "notes.xml").write_text(text.replace("@", more + "</tb>" + idle))
    found = said("check", files / "notes.xml")
    assert "writes its input although out of place" in found
    assert "110 thread blocks of a gpu must run at once" in found


def test_show(files: Path) -> None:
    path = files / "allreduce-ring.xml"
    assert "allreduce in place, 3 gpus" in said("show", path)
    assert "fault: gpu 0, o[0]: must end" in said("show", files / "own.xml")
    assert said("show", path, "--csv").startswith(
        "gpu,tb,chan,step,type,send,recv,srcbuf,srcoff,dstbuf,dstoff,cnt,depid,deps,hasdep,time 0,0,0,0,s,1,2,i,0,"
    )
    said("show", path, "--plot", files / "ring.png")
    assert (files / "ring.png").stat().st_size > 1000
    assert "takes a file ending in" in said("show", path, "--plot", files / "ring.doc", code=2)
    stuck = edited(TWO, 0, 1, 0, depid=1, deps=0)
    (files / "stuck.xml").write_text(stuck)
    assert "deadlock" in said("show", files / "stuck.xml", "--plot", files / "x.png", code=2)


def test_import(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    assert "its time: synth import allgather-out.xml --machine" in said("import", "allgather-out.xml")
    text = said("import", "allgather-ring.xml", "--machine", "dgx1", "ranks=0,1,2", "bytes=3MB", "--results", "res")
    assert "proven bound" in text
    assert "gap" in text
    assert "2 records hold" in said("check", "res")
    made = next(files.glob("dgx1*.json"))
    assert "on dgx1" in said("import", "allgather-ring.xml", "--machine", made)
    assert "the instance says all" in said("import", "allgather-ring.xml", "--machine", made, "bytes=6MB", code=2)
    assert "must end with its own i[0]" in said("import", "own.xml", "--machine", "dgx1", code=2)
    assert "unknown; one of" in said("import", "allgather-ring.xml", "--machine", "none", code=2)
    assert "among 3 gpus, the instance asks" in said(
        "import", "allgather-ring.xml", "--machine", "dgx1", "bytes=8MB", code=2
    )


def test_import_of_a_plan(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out as a plan and in again, the machine named or in an instance."""
    monkeypatch.chdir(files)
    said("make", "fabric", "machine=dgx1", "ranks=0,1,2", "collective=reduce_scatter", "bytes=3MB", "-o", "i.json")
    said("solve", "i.json", "-m", "direct", "--results", "res")
    said("export", next(files.glob("res/fabric/*/direct.json")), "--format", "mscclpp", "-o", "plan.json")
    for words in (("--machine", "i.json"), ("--machine", "dgx1", "ranks=0,1,2", "bytes=3MB")):
        assert "proven bound" in said("import", "plan.json", *words)


def test_show_of_a_plan(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words and as a table, whose rows are as many as the words say; a plan that fails says why."""
    monkeypatch.chdir(files)
    said("make", "fabric", "machine=dgx1", "ranks=0,1,2", "collective=allgather", "bytes=3MB", "-o", "i.json")
    said("solve", "i.json", "-m", "direct", "--results", "res")
    said("export", next(files.glob("res/fabric/*/direct.json")), "--format", "mscclpp", "-o", "plan.json")
    words = said("show", "plan.json")
    assert "allgather out of place, 3 gpus" in words
    made = re.search(r"(\d+) operations", words)
    assert made is not None
    table = pd.read_csv(io.StringIO(CliRunner().invoke(app, ["show", "plan.json", "--csv"]).stdout))
    assert len(table) == int(made[1])
    assert list(table.columns)[:4] == ["gpu", "tb", "step", "type"]
    plan = json.loads((files / "plan.json").read_text())
    block = next(block for block in plan["gpus"][0]["threadblocks"] if block["ops"])
    block["ops"] = []
    (files / "broken.json").write_text(json.dumps(plan))
    assert "fault: " in said("show", "broken.json")
    assert "--plot draws records" in said("show", "plan.json", "--plot", "x.png", code=2)


ATTRIBUTES = {"azure": ("outofplace", "minBytes", "maxBytes"), "msccl": ("name",)}  # beside those of both
BOTH = ("nchannels", "inplace")


@pytest.mark.parametrize("broken", ["holds", "has a race", "breaks off", "has a wrong number"])
@pytest.mark.parametrize("options", ["", "--executor azure", "--executor msccl", "--collective allgather"])
def test_every_missing_attribute_is_named(files: Path, broken: str, options: str) -> None:
    """Whatever else is wrong with the file, and whatever is asked for."""
    text = {
        "holds": TWO, "has a race": edited(TWO, 0, 0, 1, depid=-1, deps=-1),
        "breaks off": TWO[: TWO.index("<gpu id=\"1")],
        "has a wrong number": edited(TWO, 0, 0, 1, cnt="x"),
    }[broken]  # fmt: skip
    missing = [*BOTH, *ATTRIBUTES["azure"], *ATTRIBUTES["msccl"]]
    missing += ["coll"] if "--collective" in options else []
    for key in missing:
        text = re.sub(rf' {key}="[^"]*"', "", text, count=1)
    path = files / "lacks.xml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["check", str(path), *options.split()])
    for key in missing:
        assert re.search(rf"\b{key}\b.*(missing|wanted)|missing: .*\b{key}\b", done.output), (key, done.output)


def test_no_reason_is_cut_off(files: Path) -> None:
    """Thirty-two faults of one kind stand before the one of another that is the reason to rewrite the algorithm."""
    rows = "".join(f"tb {1} -1 {c}: {'; '.join(['s i0'] * (65 if c == 9 else 1))}\n" for c in range(40))
    rows += "tb -1 -1 0: cpy i0 >o0\n"
    text = xml("allgather", 2, 2, False, f"gpu 0 1 2 0\n{rows}gpu 1 1 2 0")
    for key in ("outofplace", "minBytes", "maxBytes"):
        text = text.replace(f' {key}="', f' no{key}="')
    (files / "many.xml").write_text(text)
    for options in ((), ("--executor", "azure")):
        found = " ".join(CliRunner().invoke(app, ["check", str(files / "many.xml"), *options]).output.split())
        assert "65 steps, at most 64 (MSCCL_MAX_NUM_STEPS of its build)" in found
        for key in ("outofplace", "minBytes", "maxBytes"):
            assert f"{key} is missing" in found
        assert re.search(r"chan = 32: must be in 0\.\.31 \(8 times; then", found)


def test_the_first_fault_of_every_kind_is_shown(files: Path) -> None:
    """A file with many faults of every kind that the reader knows: none hides another, and each says how many."""
    rows = "".join(f"tb -1 -1 0: {'; '.join(['cpy i0 >o0'] * 50)}\n" for _ in range(30))
    text = xml("allgather", 2, 2, False, f"gpu 0 1 2 0\n{rows}gpu 1 1 2 0").replace(' minBytes="0"', "")
    edits = [("cnt", None), ("type", "cp"), ("srcbuf", "q"), ("depid", "9x"), ("hasdep", None), ("deps", "4")]
    lines = text.splitlines()
    steps = [n for n, line in enumerate(lines) if "<step" in line]
    for k, n in enumerate(steps):
        key, value = edits[k * len(edits) // len(steps)]
        lines[n] = re.sub(rf' {key}="[^"]*"', "" if value is None else f' {key}="{value}"', lines[n])
    lines[steps[-1]] = re.sub(r' dstoff="[^"]*"', "", lines[steps[-1]])
    (files / "kinds.xml").write_text("\n".join(lines).replace(' proto="Simple"', ' proto="Fast"'))
    found = " ".join(CliRunner().invoke(app, ["check", str(files / "kinds.xml")]).output.split())
    for words in (
        "cnt is missing (250 times", "type must be one of", "srcbuf must be one of", "depid is no whole number",
        "hasdep is missing (250 times", "both are -1, or none (2", "dstoff is missing", "proto must be one of",
        "minBytes is missing, and azure refuses",
    ):  # fmt: skip
        assert words in found, (words, found)
