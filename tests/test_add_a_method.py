"""A method for a family of somebody else's: by the entry point of a distribution, or in a file beside the instance."""

from __future__ import annotations

import json
import re
import shutil

from third_party import ROOT, Place

import synth

PYPROJECT = """
[project]
name = "{name}"
version = "0.2"
[project.entry-points."synth.methods"]
{entries}
"""
STAR = '''
"""Node 0 informs all others, one a round: nodes - 1 rounds."""
from synth.family import Method, Outcome
from synth.options import Parameter, read_int

METHOD = Method("star", "reference", "node 0 sends to all", "star_methods:star",
                parameters=(Parameter("waits", read_int(0), 0, "rounds before the first"),), repeats=True)

def star(instance, options):
    waits = options.method.get("waits", 0)
    return Outcome("finished", [(waits + v, 0, v) for v in range(1, instance.nodes)])
'''


def with_methods(place: Place, name: str, entries: str, files: dict[str, str]) -> None:
    place.install(PYPROJECT.format(name=name, entries=entries), files)


def place_with_toy(tmp_path) -> Place:
    place = Place(tmp_path)
    place.install_toy()
    return place


def stored(place: Place, method: str, results: str = "results") -> dict:
    return json.loads((place.work / results / "toy_broadcast/toy-13" / f"{method}.json").read_text())


def test_by_an_entry_point(tmp_path):
    """13 nodes: the star takes 12 rounds, after 2 of waiting 14."""
    place = place_with_toy(tmp_path)
    with_methods(place, "star-methods", '"toy_broadcast.star" = "star_methods:METHOD"', {"star_methods.py": STAR})
    listed = place.done("families", "toy_broadcast")
    assert [line.split()[-2:] for line in listed.replace("│", "").splitlines() if " star " in line][:1] == [
        ["star-methods", "0.2"]
    ]
    assert "rounds before the first" in listed
    place.done("solve", "instances", "-m", "star", "-m", "chain")
    assert stored(place, "star")["objective"]["value"] == 12
    assert stored(place, "star")["method_origin"] == "star-methods 0.2"
    assert stored(place, "chain")["method_origin"] == "toy-broadcast 0.1.0"
    place.done("solve", "instances", "-m", "star", "-O", "waits=2", "--results", "waited")
    assert stored(place, "star", "waited")["objective"]["value"] == 14
    assert "method star run again: the same solution" in place.done("check", "results")
    (place.work / "study.toml").write_text('name = "s"\ninstances = ["instances"]\n[[run]]\nmethods = ["star"]\n')
    place.done("study", "study.toml")
    assert "star" in (place.work / "results/studies/s/table.csv").read_text()
    place.uninstall("star-methods")
    assert "method star: not installed here" in place.done("check", "results/toy_broadcast/toy-13/star.json")
    result = place.synth("solve", "instances", "-m", "star")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "unknown method 'star' of family toy_broadcast" in result.stderr


def test_another_release_of_a_method_is_no_fault(tmp_path):
    """Another schedule by the method of the same name and release is one; a new release may well find another."""
    place = place_with_toy(tmp_path)
    entry = '"toy_broadcast.star" = "star_methods:METHOD"'
    with_methods(place, "star-methods", entry, {"star_methods.py": STAR})
    place.done("solve", "instances", "-m", "star")
    (place.site / "star_methods.py").write_text(STAR.replace("waits + v,", "waits + v + 1,"))
    assert "run again it gives 13" in place.done("check", "results", code=1)
    about = place.site / "star_methods-0.2.dist-info"
    (about / "METADATA").write_text((about / "METADATA").read_text().replace("0.2", "0.3"))
    assert "method star: run again it gives 13" in place.done("check", "results")


BROKEN = {  # what the entry point is named, the module behind it, and the words for it
    "boom": ("boom:METHOD", "1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
    "missing": ("nowhere:METHOD", "", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    "nameless": (
        "nameless:OTHER",
        STAR,
        "cannot be loaded: AttributeError: module 'nameless' has no attribute 'OTHER'",
    ),
    "function": ("function:star", STAR, "names function:star, of type function: must be a Method"),
    "other": ("other:METHOD", STAR, "names the method 'star': must be toy_broadcast.star"),
    "chain": ("chain:METHOD", STAR.replace('"star", "r', '"chain", "r'), "has a method chain of its own"),
    "kind": ("kind:METHOD", STAR.replace("reference", "guess"), "'guess': must be one of program, reference, bound"),
    "path": ("path:METHOD", STAR.replace('"star", "r', '"../star", "r'), "a name has letters, digits and _ only"),
}


def test_a_broken_entry_point_costs_one_line(tmp_path):
    """Everything else works on: the families are listed, the other methods run, their records hold no word of it."""
    place = place_with_toy(tmp_path)
    for name, (target, text, _) in BROKEN.items():
        files = {f"{name}.py": text} if text else {}
        with_methods(place, f"of-{name}", f'"toy_broadcast.{name}" = "{target}"', files)
    with_methods(place, "strange", '"toy_broadcasts.star" = "star:METHOD"', {"star.py": STAR})
    result = place.synth("solve", "instances", "-m", "chain")
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if line.startswith("synth: entry point toy_broadcast.")]
    assert len(said) == len(BROKEN)
    for name, (_, _, words) in BROKEN.items():
        [line] = [line for line in said if f"toy_broadcast.{name} (synth.methods)" in line]
        assert f"of-{name} 0.2" in line
        assert words in line
    assert stored(place, "chain")["objective"]["value"] == 12
    assert "stderr" not in stored(place, "chain")
    result = place.synth("families")
    assert "toy-broadcast 0.1.0" in result.stdout
    assert (
        "synth: entry point toy_broadcasts.star (synth.methods) of strange 0.2 adds to a family that is not installed; "
        "did you mean toy_broadcast? "
    ) in result.stderr


def test_a_method_that_is_left_out_is_missed_with_the_reason(tmp_path):
    """Of two methods of one name neither is taken: the order of installing decides nothing. The line is said once."""
    place = place_with_toy(tmp_path)
    for name in ("one", "two"):
        with_methods(
            place, f"{name}-methods", f'"toy_broadcast.star" = "{name}_star:METHOD"', {f"{name}_star.py": STAR}
        )
    result = place.synth("solve", "instances", "-m", "star")
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("synth: unknown method 'star' of family toy_broadcast; one of bound, chain, doubling, ilp; ")
    assert line.endswith("is the name of several: left out is that of one-methods 0.2 and two-methods 0.2")


def test_a_family_that_cannot_be_loaded_costs_one_line(tmp_path):
    place = place_with_toy(tmp_path)
    entries = '[project.entry-points."synth.families"]\nxtree = "worse:FAMILY"\nworse = "worse:FAMILY"\n'
    place.install(f'[project]\nname = "worse"\nversion = "1"\n{entries}', {"worse.py": "FAMILY = 3"})
    result = place.synth("families")
    assert result.returncode == 0
    assert "toy-broadcast 0.1.0" in result.stdout
    assert "XTree: link allocation" in result.stdout
    assert result.stderr.splitlines() == [
        "synth: entry point xtree (synth.families) is the name of one of synth's own: left out is that of worse 1",
        "synth: entry point worse (synth.families) of worse 1 names worse:FAMILY, of type int: must be a Family",
    ]
    result = place.synth("make", "worse", "nodes=3")
    assert result.returncode == 2
    assert "of worse 1 names worse:FAMILY, of type int: must be a Family" in result.stderr.splitlines()[0]


PLAIN = '''
"""Everybody knows it from node 0."""
from synth.family import Method, Outcome
from synth.options import Parameter, read_int
from helpers import first  # a file beside this one


def star(instance, options):
    """Node 0 sends to all."""
    return Outcome("finished", [(v + first() - 1, 0, v) for v in range(1, instance.nodes)])


def waiting(instance, options):
    waits = options.method["waits"]
    return Outcome("finished", [(waits + v, 0, v) for v in range(1, instance.nodes)])


WAITING = Method("x", "reference", "waits", "{module}:waiting", parameters=(
    Parameter("waits", read_int(0), 0, "rounds before the first", question=True),))
NOTHING = 3
'''


def put(place: Place, name: str, text: str) -> None:
    path = place.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_function_in_a_file_beside_the_instance(tmp_path):
    """The file bears the name of an installed package (so does its helper's folder not), which neither hides nor
    replaces it; the runs are forked processes, several of one guard."""
    place = place_with_toy(tmp_path)
    put(place, "instances/networkx.py", PLAIN.format(module="networkx"))
    put(place, "instances/helpers.py", "def first():\n    return 1\n")
    names = ["networkx:star", "networkx:WAITING"]
    place.done("solve", "instances", "-m", names[0], "-m", names[1], "-m", "chain", "-j", "1")
    record = stored(place, "networkx@star")
    assert (record["method"], record["kind"], record["objective"]["value"]) == (names[0], "reference", 12)
    name, digest = record["method_origin"].split()
    assert (name, len(digest)) == ("networkx.py", 16)
    place.done("solve", "instances", "-m", names[1], "-O", "waits=3")
    assert stored(place, "networkx@WAITING-waits=3")["objective"]["value"] == 15
    shown = place.done("solve", "instances", "-m", names[1], "-O", "waits=3", "--resume", "--all")
    assert f"{names[1]}, waits=3" in shown
    assert "1 of 1 runs were done before" in shown
    for folder in ("results", "elsewhere"):  # no record starts code: neither where the file is, nor elsewhere
        if folder == "elsewhere":
            (place.work / "results").rename(place.work / folder)
            put(place, "instances/networkx.py", "import pathlib; pathlib.Path('started').touch()")
        checked = place.done("check", folder)
        assert f"method {names[0]}: in a file, which no record starts" in checked
    assert not (place.work / "started").exists()


def test_a_file_that_changed_is_run_again(tmp_path):
    place = place_with_toy(tmp_path)
    put(place, "mine.py", PLAIN.format(module="mine").replace("from helpers", "from .helpers"))
    put(place, "helpers.py", "def first():\n    return 1\n")
    again = ("solve", "instances", "-m", "mine:star", "--resume")
    place.done(*again)
    assert "1 of 1 runs were done before" in place.done(*again)
    put(place, "mine.py", (place.work / "mine.py").read_text().replace("(v + first()", "(v + 1 + first()"))
    assert "runs were done before" not in place.done(*again)
    assert stored(place, "mine@star")["objective"]["value"] == 13


def test_a_file_is_named_as_a_file_or_as_a_module(tmp_path):
    """Either way it is one method, which has one record."""
    place = place_with_toy(tmp_path)
    put(place, "mine/stars.py", PLAIN.format(module="mine.stars"))
    put(place, "helpers.py", "def first():\n    return 1\n")
    place.done("solve", "instances", "-m", "mine.stars:star")
    for name in ("mine/stars.py:star", "./mine/stars.py:star"):
        assert "1 of 1 runs were done before" in place.done("solve", "instances", "-m", name, "--resume")
    study = 'name = "s"\ninstances = ["instances"]\nbaselines = ["{0}"]\n[[run]]\nmethods = ["{0}", "chain"]\n'
    put(place, "study.toml", study.format("mine/stars.py:star"))
    place.done("study", "study.toml")
    assert "ratio_to_mine.stars:star" in (place.work / "results/studies/s/table.csv").read_text()


def test_a_file_in_studies_and_batches(tmp_path):
    """In a package in the current folder; a batch's task starts in a process of its own."""
    place = place_with_toy(tmp_path)
    put(place, "mine/stars.py", PLAIN.format(module="mine.stars"))
    put(place, "helpers.py", "def first():\n    return 1\n")
    study = 'name = "s"\ninstances = ["instances"]\nbaselines = ["mine.stars:star"]\n[[run]]\nmethods = ["{}"]\n'
    put(place, "study.toml", study.format('mine.stars:star", "mine.stars:WAITING", "chain'))
    place.done("study", "study.toml")
    table = (place.work / "results/studies/s/table.csv").read_text()
    assert "mine.stars:star" in table
    assert "mine.stars:WAITING" in table
    place.done("batch", "submit", "instances", "-m", "mine.stars:star", "--folder", "b")
    status = place.synth("batch", "status", str(place.work / "b"), cwd=tmp_path)
    assert "1 done" in " ".join(status.stdout.split()), status.stdout + status.stderr
    put(place, "study.toml", study.replace("star", "sun").format("mine.suns:sun").replace("suns:", "stars:"))
    result = place.synth("study", "study.toml")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "has no sun" in result.stderr


WRONG = {  # -m, and the words for it
    "mine:": "must be package.module:function",
    "../mine:star": "must be package.module:function",
    "../mine.py:star": "or package/module.py:function, beside the instance or in the current folder",
    "mine.py:moon": "mine.py: has no moon",
    "json:dumps": "there is no file json.py in ",
    "mine:sun": "mine.py: has no sun",
    "mine:NOTHING": "is of type int: must be a function (instance, RunOptions) -> Outcome, or a Method",
    "mine:Outcome": "is of type type: must be a function (instance, RunOptions) -> Outcome, or a Method",
    "broken:star": "broken.py: cannot be imported: ZeroDivisionError: division by zero (line 3)",
    "unfinished:star": "unfinished.py: cannot be imported: SyntaxError:",
}


def test_what_names_no_method(tmp_path):
    """All of it at once, a line each, and nothing runs."""
    place = place_with_toy(tmp_path)
    put(place, "mine.py", PLAIN.format(module="mine"))
    put(place, "helpers.py", "def first():\n    return 1\n")
    put(place, "broken.py", "import os\n\n1 / 0\n")
    put(place, "unfinished.py", "def star(:\n")
    result = place.synth("solve", "instances", *(word for name in WRONG for word in ("-m", name)))
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert len(lines) == len(WRONG)
    for line, words in zip(lines, WRONG.values(), strict=True):
        assert words in line
    assert not (place.work / "results").exists()


PROGRAM = """
from synth.family import Method
from toy_broadcast.programs import solve

PROGRAM = Method("x", "program", "the toy's own, in a file", "mine:solve", needs=("milp",))
"""


def test_the_model_of_a_method_in_a_file(tmp_path):
    """It is written once the user names the method: the name in the record alone starts no code. Of 13 nodes the model
    has 12 rounds, so 12 numbers of sends."""
    place = place_with_toy(tmp_path)
    put(place, "instances/mine.py", PROGRAM)
    place.done("solve", "instances", "-m", "mine:PROGRAM", "-m", "ilp")
    for name, more in (("ilp-highs", ()), ("mine@PROGRAM-highs", ("-m", "mine:PROGRAM"))):
        path = f"results/toy_broadcast/toy-13/{name}.json"
        place.done("export", path, "-o", f"{name}.lp", *more)
    own, theirs = ((place.work / f"{name}.lp").read_text() for name in ("ilp-highs", "mine@PROGRAM-highs"))
    assert own.split("bounds")[1] == theirs.split("bounds")[1]
    assert len(set(re.findall(r"\bsends\S*", theirs))) == 12

    result = place.synth("export", path, "-o", "again.lp", "-m", "mine:other")
    assert (result.returncode, result.stderr) == (
        2, "synth: --method = 'mine:other': the record is of method mine:PROGRAM\n",
    )  # fmt: skip
    started = f"import pathlib; pathlib.Path({str(tmp_path / 'started')!r}).touch()"
    put(place, "instances/mine.py", f"{started}\n{PROGRAM}")
    result = place.synth("export", path, "-o", "again.lp")
    assert result.returncode == 2
    assert "is in a file, which no record starts: name it with -m mine:PROGRAM" in result.stderr
    assert not (tmp_path / "started").exists()
    result = place.synth("export", path, "-o", "again.lp", "-m", "mine:PROGRAM")
    assert result.returncode == 0, result.stderr
    assert "the file of method mine:PROGRAM has changed since the run" in result.stderr
    (place.work / "instances/mine.py").unlink()
    result = place.synth("export", path, "-o", "again.lp", "-m", "mine:PROGRAM")
    assert (result.returncode, "there is no file mine.py in" in result.stderr) == (2, True)


LEAVING = '''
"""What has to leave a rank over all its links."""
from synth.method import Certificates, Method, Outcome

METHOD = Method("leaving", "bound", "what a rank sends", "leaving:solve")
CERTIFICATES = Certificates("leaving", argument="leaving_check:faults")

def solve(instance, options):
    bound = instance.blocks.bytes[2] / 75e9
    return Outcome("finished", None, bound, "what leaves rank 2", {"argument": "leaving", "rank": 2})
'''
LEAVING_CHECK = """
def faults(instance, bound, certificate):
    net, rank = instance.machine.network, certificate["rank"]
    rate = sum(b for b, v in zip(net.bandwidth, net.src) if v == rank)
    least = instance.blocks.bytes[rank] / rate
    return [] if bound <= least else [f"rank {rank} needs {least} s"]
"""
OWN_CHECKS = """
[project]
name = "leaving"
version = "0.3"
[project.entry-points."synth.methods"]
"fabric.leaving" = "leaving:METHOD"
[project.entry-points."synth.certificates"]
"fabric.leaving" = "leaving:CERTIFICATES"
"""


def test_a_method_of_others_brings_the_check_of_its_certificates(tmp_path):
    """A block over three links of 25 GB/s: certified where its check is installed, and no longer where it is not."""
    place = Place(tmp_path)
    place.install(OWN_CHECKS, {"leaving.py": LEAVING, "leaving_check.py": LEAVING_CHECK})
    shutil.copy(ROOT / "instances/fabric/full-4-allgather-4KiB.json", place.work)
    place.done("solve", "full-4-allgather-4KiB.json", "-m", "leaving")
    file = place.work / "results/fabric/full-4-allgather-4KiB/leaving.json"
    record = json.loads(file.read_text())
    assert record["verified"]["facts"]["certificate"] == "verified"
    assert record["bound"] == instance_of(place).blocks.bytes[2] / 75e9
    place.done("check", "results")
    file.write_text(json.dumps(record | {"bound": 2 * record["bound"]}))
    assert "rank 2 needs " in place.done("check", "results", code=1)
    file.write_text(json.dumps(record))
    place.uninstall("leaving")
    assert "the certificate is broken: argument is not one of " in place.done("check", "results", code=1)


def test_certificates_of_another_name_cost_one_line(tmp_path):
    place = Place(tmp_path)
    place.install(
        OWN_CHECKS.replace('"fabric.leaving" = "leaving:C', '"fabric.other" = "leaving:C'), {"leaving.py": LEAVING}
    )
    shutil.copy(ROOT / "instances/fabric/full-4-allgather-4KiB.json", place.work)
    result = place.synth("solve", "full-4-allgather-4KiB.json", "-m", "leaving")
    words = "of leaving 0.3 names the certificates 'leaving': must be fabric.leaving"
    assert f"entry point fabric.other (synth.certificates) {words}" in result.stderr


def instance_of(place: Place) -> synth.Instance:
    return synth.read(place.work / "full-4-allgather-4KiB.json")
