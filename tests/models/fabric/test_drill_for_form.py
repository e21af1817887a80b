"""``synth drill --for``: the schedule that is quickest as exported, and a drawer of files that run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import command
import pytest

import synth
from synth.drill import cover, drawer, page, search
from synth.drill.in_form import variants
from synth.errors import InputError
from synth.exchange import msccl_xml
from synth.exchange.block_costs import CostModel, cost_model
from synth.exchange.file_check import check_file
from synth.exchange.forms import in_form, in_seconds
from synth.family import get_family
from synth.options import RunOptions

RING: dict[str, Any] = {"network": "ring", "nodes": 4, "collective": "allgather", "bytes": "4MiB"}
LINE: dict[str, Any] = {"network": "line", "nodes": 3, "collective": "allreduce", "bytes": "4MiB"}
METHODS: Mapping[str, Mapping[str, str]] = {
    "ring": {},
    "forest": {"chunks": "2"},
    "direct": {},
}  # with their parameters


def drilled(
    folder: Path, keys: dict[str, Any], form: str = "msccl:azure", costs: CostModel | None = None
) -> search.Drill:
    """A drill whose runs are made in this process."""
    drill = search.prepared(search.Question(synth.make("fabric", **keys), folder, form=form, costs=costs))
    for case in (drill.whole, *drill.cases):
        if case.instance is not None:
            for name, options in METHODS.items():
                search.take(drill, case, synth.solve(case.instance, name, time_limit=10, options=options))
    search.borrow(drill)
    return drill


def test_the_quickest_as_exported_counts(tmp_path: Path) -> None:
    """A case's time is the least of all its schedules in the form, each lowered on its own."""
    drill = drilled(tmp_path, RING)
    for case in (drill.whole, *drill.cases):
        times = [in_form(record, "msccl:azure").seconds for record in case.records if record.value is not None]
        assert case.best_seconds == min(times)
        assert case.quickest is not None
        assert case.quickest.program.seconds(case.instance) == case.best_seconds  # type: ignore[arg-type]
    table = page.frame(drill)
    assert (table["ratio"] * table["scheduled_s"]).tolist() == pytest.approx(table["seconds"].tolist())


def test_thread_blocks_and_steps_cost_what_the_model_says(tmp_path: Path) -> None:
    """The least of all its schedules under the costs, which its files, lowered anew, are timed by too."""
    costs = cost_model("msccl:azure", None, {"block": 1e8, "step": 1e-3, "launch": 1e-2})
    drill = drilled(tmp_path, RING, costs=costs)
    for case in (drill.whole, *drill.cases):
        held = [record for record in case.records if record.value is not None]
        times = [in_form(record, "msccl:azure", costs).seconds for record in held]
        assert case.best_seconds == min(times) > 1e-2 + min(in_form(record, "msccl:azure").seconds for record in held)
    for words in page.frame(drill)["limit"]:  # a launch of 10 ms, of steps of 1 ms
        assert words.startswith("thread blocks, steps and the launch: ")
        assert {"the rate of thread blocks", "steps", "the launch"} <= set(re.split(r", |\d+% less without ", words))
    contents = drawer.write(drill, cover.cover(drill, RunOptions(20.0, solver="highs")), tmp_path / "d")
    assert all(row.best_seconds * (1 + contents.within) >= row.seconds > 1e-2 for row in contents.failures)


def test_every_failure_has_a_file_that_runs(tmp_path: Path) -> None:
    """Each passes the check of its executor, and takes what the index says on the machine with that failure."""
    drill = drilled(tmp_path, RING)
    contents = drawer.write(drill, cover.cover(drill, RunOptions(20.0, solver="highs")), tmp_path / "d")
    assert contents.form == "msccl:azure"
    assert len(contents.failures) == 4
    for row in contents.failures:
        found = drawer.answer(tmp_path / "d", row.failure)
        assert found.program is not None
        assert not check_file(found.program, "allgather", "azure").faults
        [algorithm] = msccl_xml.read(found.program).algorithms()
        there = drill.breakable.broken(drill.breakable.find(row.failure, None), None)
        assert in_seconds(there, algorithm) == pytest.approx(row.seconds, rel=1e-12)
        assert row.seconds <= row.best_seconds * (1 + contents.within)
    assert found.program is not None
    found.program.unlink()
    with pytest.raises(InputError, match="is not there"):
        drawer.answer(tmp_path / "d", contents.failures[-1].failure)


def test_a_forged_name_of_a_file_is_refused(tmp_path: Path) -> None:
    drill = drilled(tmp_path, RING)
    drawer.write(drill, cover.cover(drill, RunOptions(20.0, solver="highs")), tmp_path / "d")
    index = tmp_path / "d" / drawer.INDEX
    forged = json.loads(index.read_text())
    forged["failures"][0]["program"] = "../../etc/passwd.xml"
    index.write_text(json.dumps(forged))
    with pytest.raises(InputError, match="program"):
        drawer.answer(tmp_path / "d", forged["failures"][0]["failure"])


def test_failures_that_part_the_ranks_have_no_file(tmp_path: Path) -> None:
    drill = drilled(tmp_path, LINE)
    contents = drawer.write(drill, cover.cover(drill, RunOptions(20.0, solver="highs")), tmp_path / "d")
    assert not contents.failures
    assert len(contents.parted) == 2
    assert not list((tmp_path / "d" / drawer.PROGRAMS).iterdir())


def test_runs_for_a_form() -> None:
    """Each of a method's parameters once and none that it does not know; plans begin with what a loop repeats."""
    methods = get_family("fabric").methods
    assert variants("msccl:azure", methods["nvls"], 8) == [{}]
    fewer = [one.get("transfers") for one in variants("mscclpp", methods["ring"], 8)]
    assert fewer == ["800", None, "2800", "7200"]
    for form, firsts in (("mscclpp", [{"chunks": "1"}]), ("msccl:azure", [{"transfers": "15200"}, {}])):
        forest = variants(form, methods["forest"], 8)
        assert forest[: len(firsts)] == firsts
        assert {one.get("chunks") for one in forest} == {None, "1", "2", "4", "8", "16", "64"}
        assert len(forest) == len({str(one) for one in forest})


@pytest.mark.parametrize(("gpu", "percent"), [("ampere", 83), ("mi300x", None)])
def test_where_executors_leave_links_within_boxes_less_it_is_planned_for(gpu: str, percent: int | None) -> None:
    """By methods that can, once, with few transfers; where these links keep more than NICs do, nothing is."""
    costs = cost_model("msccl:azure", gpu)
    family = get_family("fabric")
    runs = variants("msccl:azure", family.method("hierarchical"), 16, costs)
    few = {"transfers": "1600"}
    assert runs[0] == few
    assert [one for one in runs if "inner_rate" in one] == ([few | {"inner_rate": str(percent)}] if percent else [])
    assert not any("inner_rate" in one for one in variants("msccl:azure", family.method("ring"), 16, costs))


def test_a_slow_schedule_of_fewer_transfers_ends_no_method(tmp_path: Path) -> None:
    """What the method makes on its own decides whether more is tried of it, and that comes second."""
    drill = search.prepared(search.Question(synth.make("fabric", **RING), tmp_path, form="msccl:azure"))
    case = drill.whole
    assert case.instance is not None
    runs = [run for run in search.runs_of(drill) if run.instance is case.instance]
    chunked = next(run for run in runs if run.options.method.get("chunks") == 4)
    case.borrowed_seconds = 1e-9  # whatever is made is slow beside it
    search.take(drill, case, synth.solve(case.instance, "forest", options={"transfers": "12"}))
    assert not search._is_useless(chunked, case)
    search.take(drill, case, synth.solve(case.instance, "forest"))
    assert search._is_useless(chunked, case)


def test_as_near_as_exported_to_a_schedule_near_its_bound_is_enough(tmp_path: Path) -> None:
    drill = search.prepared(search.Question(synth.make("fabric", **RING), tmp_path, form="msccl:azure"))
    case = drill.whole
    assert case.instance is not None
    for name in ("bound", "forest"):
        search.take(drill, case, synth.solve(case.instance, name))
    assert case.quickest is not None
    assert case.scheduled is not None
    assert case.bound is not None
    bound, value = case.bound, float(case.scheduled.value or 0)
    gap = 1 - bound / value + 1e-6  # of the schedule itself
    for seconds, enough in ((bound, True), (value / (1 - gap) * (1 - 1e-9), True), (value / (1 - gap) * 1.01, False)):
        case.quickest = case.quickest._replace(seconds=seconds)
        assert case.within(gap) == enough
    assert not case.within(0.0) or value == bound


def test_an_unknown_form_is_one_message(tmp_path: Path) -> None:
    said = command.run("drill", "dgx-a100", "--for", "fair", "-o", "x", cwd=tmp_path, code=2)
    assert "--for = 'fair': must be one of scheduled, msccl:azure, msccl, mscclpp" in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_an_unknown_gpu_is_one_message(tmp_path: Path) -> None:
    said = command.run("drill", "dgx-a100", "--for", "msccl", "--gpu", "x", "-o", "x", cwd=tmp_path, code=2)
    assert "--gpu = 'x': must be one of volta" in said.stderr
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.long
def test_the_command_writes_files_and_names_them(tmp_path: Path) -> None:
    words = ["drill", "network=ring", "nodes=4", "--collective", "allgather", "--size", "4MiB", "-m", "forest"]
    command.run(*words, "--for", "mscclpp", "-o", "out", cwd=tmp_path)
    answer = command.run("drill", "out/drawer", "--answer", "link 2 3", "-o", "now.json", cwd=tmp_path)
    name = next(line for line in answer.stdout.splitlines() if line.startswith("as mscclpp runs it")).split(": ")[1]
    command.run("check", name, "--executor", "mscclpp", cwd=tmp_path)
    assert synth.check(tmp_path / "now.json").ok
