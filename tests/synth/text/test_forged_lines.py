"""Whatever text a file holds, and wherever it stands: no line of the output is forged, no terminal is given an order,
and the exit code is that of a file with that fault."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from exchange import plans_by_hand
from hostile_text import (
    ENDS,
    HALF,
    HOSTILE,
    TERMINAL,
    TEXTS,
    every_place,
    honest,
    places,
    put,
    run,
    variants,
    write_all,
)

import synth
from synth import api
from synth.batch import plan
from synth.errors import InputError
from synth.family import get_family
from synth.method import load
from synth.records.contents import Contents
from synth.records.folder import pack
from synth.study.definition import _File

ROOT = Path(__file__).resolve().parents[3]
INSTANCES = ROOT / "instances"
SMALL = {  # instances whose texts are many, and a quick method
    "xtree": ("ring-8-c1", "pull"),
    "fabric": ("star-6-several-push-pull", "pull"),
    "mlfm": ("d3-pairs-24-leaf", "greedy"),
    "bine": ("synthetic-jobs-broadcast", "bine"),
    "harvest": ("swing-torus-16-4x4-p4", "greedy"),
    "optree": ("mesh-2x3-w1", "relay"),
}
SAMPLES = ROOT / "tests" / "exchange"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A record with a certificate, its instance's text within it."""
    folder, file = tmp_path_factory.mktemp("record"), INSTANCES / "xtree" / "ring-8-c1.json"
    made = api.solve(synth.read(file), "pull", results=folder)
    bound = api.solve(synth.read(file), "bound", results=folder)
    assert made.path is not None
    assert bound.path is not None
    data: dict[str, Any] = json.loads(made.path.read_text())
    other = json.loads(bound.path.read_text())
    data |= {"instance_text": file.read_text(), "bound": other["bound"], "certificate": other["solution"]}
    data["bound_proof"] = other["bound_proof"]
    assert other["solution"]
    return data


def test_a_certificates_unknown_key_forges_no_verdict(tmp_path: Path, stored: dict[str, Any]) -> None:
    for number, text in enumerate((HOSTILE, f"\n{HOSTILE}", "a\n\nb")):
        forged = stored | {"certificate": {**stored["certificate"], text: 1, "binding": text}, "bound": 1e6}
        (tmp_path / f"{number}.json").write_text(json.dumps(forged))
    done = run("check", ".", cwd=tmp_path, codes=(1,))
    assert done.stdout.count("FAILED") == 4  # a line each, and the closing one
    shown = run("show", "0.json", cwd=tmp_path, codes=(0,)).stdout
    assert "\\n" in shown


@pytest.mark.parametrize(
    "typed", ["one\nok rs/x: forged", f"a{TERMINAL.replace(chr(0), '')}", "\u202eb\u2028ok", f"=c{ENDS}"]
)
def test_what_was_typed_wrongly(tmp_path: Path, typed: str) -> None:
    """Commands, options, their values and arguments too many: click's own errors tell of them."""
    for words in ([typed], ["cite", "a", typed], ["cite", f"--{typed}"], ["solve", "a", f"--resume={typed}"],
                  ["export", "a", f"-{typed}"], ["export", "a", "--channels", typed], ["export", f"--channels={typed}"],
                  ["batch", typed], ["batch", "status", "a", typed]):  # fmt: skip
        done = run(*words, cwd=tmp_path, codes=(2,))
        assert done.stderr


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_records(tmp_path: Path, stored: dict[str, Any], text: str) -> None:
    """Every field that may be a text, every key; in files of their own and packed; checked and shown."""
    found = places(Contents.model_json_schema(), stored)
    found += [("solution", *place) for place in every_place(stored["solution"])]
    found += [("certificate", *place) for place in every_place(stored["certificate"])]
    found += [("options", *place) for place in every_place(stored["options"])]
    found += [("verified", "facts", *place) for place in every_place(stored["verified"]["facts"])]
    made = [put(stored, place, TEXTS[text]) for place in dict.fromkeys(found)]
    count = write_all(tmp_path / "records", iter(made))
    assert count > 60
    done = run("check", "records", cwd=tmp_path, codes=(1, 2))
    assert "records hold" in done.stdout
    lines = [json.dumps(data | {"record_path": f"p/v{n}.json"}) for n, data in enumerate(made)]
    lines += [json.dumps(stored | {"record_path": f"p/{TEXTS[text]}.json"}), f'{{"record_path": {json.dumps(text)}']
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "records.jsonl").write_text("\n".join(lines))
    done = run("check", "packed", cwd=tmp_path, codes=(1, 2))
    for words in (["show"], ["show", "--certificate"], ["cite"], ["show", "--csv"]):
        for number in range(1, count + 1, 7):
            run(*words, f"records/v{number}.json", cwd=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("family", SMALL)
def test_texts_of_instances(tmp_path: Path, family: str) -> None:
    """Every field that may be a text, every key; what is an instance all the same is solved and shown."""
    name, method = SMALL[family]
    file = INSTANCES / family / f"{name}.json"
    data = json.loads(file.read_text())
    kind: Any = load(get_family(family).instance)
    made = list(variants(data, places(kind.model_json_schema(), data)))
    assert len(made) > 10
    good = []
    for number, one in enumerate(made):
        path = tmp_path / f"v{number}.json"
        path.write_text(json.dumps(one))
        try:
            synth.read(path)
            good.append(path)
        except InputError as error:
            honest(str(error))
    assert good
    bad = sorted(set(tmp_path.glob("v*.json")) - set(good))
    run("solve", *bad, cwd=tmp_path, codes=(2,))
    for number, path in enumerate(good):
        results = f"r{number}"
        run("solve", path, "-m", method, "-m", "bound", "--results", results, cwd=tmp_path, codes=(0,))
        [record] = (tmp_path / results).rglob(f"{method}.json")
        run("show", record, cwd=tmp_path, codes=(0,))
        run("check", results, cwd=tmp_path, codes=(0,))
        run("show", record, "--csv", cwd=tmp_path, codes=(0,))
        run("show", record, "--plot", "p.svg", cwd=tmp_path, codes=(0,))
        drawn = (tmp_path / "p.svg").read_text()
        assert "\u202e" not in drawn
        assert "<script>" not in drawn


@pytest.mark.long
def test_texts_of_mscclpp_plans(tmp_path: Path) -> None:
    data = json.loads(json.dumps(plans_by_hand.allgather()))
    count = write_all(tmp_path / "plans", variants(data, list(every_place(data))))
    files = [f"plans/v{n}.json" for n in range(1, count + 1)]
    run("check", *files, cwd=tmp_path, codes=(1, 2))
    for file in files[:: max(1, count // 12)]:
        run("show", file, cwd=tmp_path)
        run("import", file, cwd=tmp_path)


def _escaped(text: str) -> str:
    """The text in XML, as far as XML can say it."""
    letters = (c for c in text if c >= " " or c in "\n\r\t")
    return "".join(c if c.isalnum() else f"&#{ord(c)};" for c in letters if not 0xD800 <= ord(c) < 0xE000)


@pytest.mark.long
def test_texts_of_msccl_xml(tmp_path: Path, stored: dict[str, Any]) -> None:
    """Every attribute of the first elements of each kind; and the same bytes unescaped, which are no XML."""
    run("solve", INSTANCES / "fabric" / "ring-5-allreduce-5MiB.json", "-m", "ring", cwd=tmp_path, codes=(0,))
    run(
        "export",
        "results/fabric/ring-5-allreduce-5MiB/ring.json",
        "--format",
        "msccl-xml",
        "-o",
        "a.xml",
        cwd=tmp_path,
        codes=(0,),
    )
    text = (tmp_path / "a.xml").read_text()
    files: list[str] = []
    attributes = [found.span(1) for found in re.finditer(r'="([^"]*)"', text[:1500])]
    names = [found.span(1) for found in re.finditer(r" ([a-z]+)=", text[:600])]
    for number, (start, end) in enumerate([*attributes, *names]):
        for word in (_escaped(HOSTILE), HOSTILE, HALF):
            files.append(f"x{number}-{len(files)}.xml")
            changed = text[:start] + word + text[end:]
            (tmp_path / files[-1]).write_bytes(changed.encode("utf-8", "surrogatepass"))
    run("check", *files, cwd=tmp_path, codes=(0, 1, 2))
    for file in files[:: max(1, len(files) // 12)]:
        run("show", file, cwd=tmp_path)
        run("import", file, cwd=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("sample", sorted(os.listdir(SAMPLES / "machines" / "samples")))
def test_texts_of_machines(tmp_path: Path, sample: str) -> None:
    """Words of every format that `synth import` reads."""
    _run_on_words(tmp_path, SAMPLES / "machines" / "samples" / sample, "import")


@pytest.mark.long
@pytest.mark.parametrize("sample", [name for name in sorted(os.listdir(SAMPLES / "measurements" / "samples"))
                                    if not name.endswith(".json")])  # fmt: skip
def test_texts_of_logs(tmp_path: Path, sample: str) -> None:
    """Words of every log that `synth fit` reads."""
    _run_on_words(tmp_path, SAMPLES / "measurements" / "samples" / sample, "fit")


def _run_on_words(folder: Path, file: Path, command: str, most: int = 6) -> None:
    """Run the command on the file with each text in place of some of its words."""
    text = file.read_text()
    words = [found.span() for found in re.finditer(r"[^\s,<>=\"']+", text)]
    chosen = sorted({*words[: most // 2], *words[:: max(1, len(words) // most)]})
    for start, end in chosen:
        for word in (
            _escaped(HOSTILE) if file.suffix in (".xml", ".graphml") else json.dumps(HOSTILE)[1:-1],
            *TEXTS.values(),
        ):
            made = folder / f"f{file.suffix}"
            made.write_bytes((text[:start] + word + text[end:]).encode("utf-8", "surrogatepass"))
            run(command, made.name, cwd=folder)


@pytest.mark.long
def test_texts_of_tables_of_links(tmp_path: Path) -> None:
    for number, text in enumerate((HOSTILE, HALF[:90], "a\tb")):
        quoted = '"' + text.replace('"', '""') + '"'
        for row in (f"{quoted},b,1,1,c", f"a,{quoted},1,1,c", f"a,b,{quoted},1,c", f"a,b,1,1,{quoted}"):
            file = tmp_path / f"{number}.csv"
            file.write_bytes(f"src,dst,bandwidth,latency,class\n{row}\nb,a,1,1,c\n".encode("utf-8", "surrogatepass"))
            run("import", file.name, cwd=tmp_path)
            run("make", "fabric", f"links={file.name}", "bytes=4", "collective=broadcast", cwd=tmp_path)
        (tmp_path / "h.csv").write_bytes(f"src,dst,{quoted}\n0,1,1\n".encode("utf-8", "surrogatepass"))
        run("make", "xtree", "links=h.csv", cwd=tmp_path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


@pytest.mark.long
def test_texts_of_studies(tmp_path: Path) -> None:
    """Every field of a study's file."""
    data = {
        "name": "s", "title": "t", "instances": ["*.json"], "baselines": ["xtree"], "figures": ["gaps"],
        "generate": [{"family": "xtree", "parameters": {"network": "ring", "nodes": [4], "chunks": 1}}],
        "run": [{"methods": ["pull"], "only": ["*"], "solvers": ["highs"], "seeds": [0], "time_limits": ["5s"],
                 "gap": 0.1, "threads": 1, "options": {"horizon": "4"}}],
    }  # fmt: skip

    def dump(made: Any) -> str:
        return "\n".join(f"{json.dumps(key)} = {_toml(value)}" for key, value in made.items())

    count = write_all(tmp_path / "studies", variants(data, places(_File.model_json_schema(), data)), dump, ".toml")
    assert count > 30
    for number in range(1, count + 1):
        run("study", f"studies/v{number}.toml", "--results", "out", cwd=tmp_path, codes=(0, 1, 2, 4))


@pytest.mark.long
def test_a_studys_title_in_its_report(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        f'name = "s"\ntitle = {json.dumps(HOSTILE)}\n[[generate]]\nfamily = "xtree"\n'
        'parameters = {network = "ring", nodes = 4, chunks = 1}\n[[run]]\nmethods = ["pull"]\n'
    )
    run("study", "s.toml", "--results", "out", cwd=tmp_path, codes=(0,))
    [report] = (tmp_path / "out").rglob("report.html")
    page = report.read_text()
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e", "\u200b", "\0", "\x85"} & set(page)


def test_names_in_the_data_of_a_reports_animations(tmp_path: Path) -> None:
    """The page's script writes them as they stand in its JSON."""
    links = [{"src": u, "dst": v, "bandwidth": 1e9} for u, v in ((0, 1), (1, 0))]
    network = {"kind": "links", "nodes": 2, "links": links, "names": [HOSTILE, "b\u202e"]}
    data = {"format": "synth-instance/1", "family": "fabric", "name": "i", "source": HOSTILE, "bytes": 8}
    (tmp_path / "i.json").write_text(json.dumps(data | {"network": network}))
    (tmp_path / "s.toml").write_text('name = "s"\ninstances = ["i.json"]\n[[run]]\nmethods = ["direct"]\n')
    run("study", "s.toml", "--results", "out", cwd=tmp_path, codes=(0,))
    page = (tmp_path / "out" / "s" / "report.html").read_text()
    [drawn] = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert drawn["names"][1] == r"b\u202e"
    for text in filter(None, (text for value in drawn.values() if isinstance(value, list) for text in value)):
        assert not isinstance(text, str) or text.isprintable()


@pytest.mark.long
def test_texts_of_a_batchs_state(tmp_path: Path) -> None:
    """Every value of ``batch.json``."""
    words = (INSTANCES / "xtree" / "ring-8-c1.json", "-m", "pull", "--engine", "local", "--folder", "b", "--dry-run")
    run("batch", "submit", *words[:-1], cwd=tmp_path, codes=(0,))
    data = json.loads((tmp_path / "b" / plan.FILE).read_text())
    for made in variants(data, list(every_place(data))):
        (tmp_path / "b" / plan.FILE).write_text(json.dumps(made))
        run("batch", "status", "b", cwd=tmp_path)
        done = run("batch", "status", "b", "--json", cwd=tmp_path)
        if done.returncode == 0:
            assert json.loads(done.stdout)["counts"]


def test_json_output_holds_the_same_data(tmp_path: Path) -> None:
    """`--json` is ASCII on one line a record, and reads back as what the file says."""
    data = json.loads((INSTANCES / "xtree" / "ring-8-c1.json").read_text()) | {"source": HOSTILE}
    (tmp_path / "i.json").write_text(json.dumps(data))
    done = run("solve", "i.json", "-m", "pull", "--json", cwd=tmp_path, codes=(0,))
    [line] = done.stdout.splitlines()
    assert line.isascii()
    assert json.loads(line)["instance"] == data["name"]


@pytest.mark.long
def test_names_of_files(tmp_path: Path, stored: dict[str, Any]) -> None:
    """A folder of files whose names are commands to a terminal, checked, packed and solved."""
    for number, name in enumerate((f"a\n{HOSTILE}"[:60], "b\x1b[2K\u202e", "c\udcff\r", "d[red]x[/]")):
        name = name.replace("/", "_").replace("\0", "")
        (tmp_path / "records").mkdir(exist_ok=True)
        data = json.dumps(stored if number % 2 else stored | {"bound": -1.0})
        (tmp_path / "records" / f"{name}.json").write_text(data)
        instance = tmp_path / f"{name}.json"
        instance.write_text((INSTANCES / "xtree" / "ring-8-c1.json").read_text())
        run("solve", instance.name, "-m", "pull", cwd=tmp_path, codes=(0,))
        instance.write_text("{")
        run("solve", instance.name, cwd=tmp_path, codes=(2,))
    run("check", "records", cwd=tmp_path, codes=(1,))
    run("pack", "records", cwd=tmp_path)
    run("check", "records", cwd=tmp_path)
    assert pack(tmp_path / "records") == 0
