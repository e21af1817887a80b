"""``synth make step``: pipelines in closed form, published profiles and workloads, and changes of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.instance import parse, parse_json
from synth.making import Count, Keys, Listed, Positive, Rate, Seconds, plain_name
from synth.text.input_file import InputFile
from synth_models.step.instance import MOST_NODES, StepInstance
from synth_models.step.parts.changes import changed
from synth_models.step.parts.goal import goal_nodes
from synth_models.step.parts.kineto import kineto_nodes
from synth_models.step.parts.pipelines import pipeline
from synth_models.step.parts.priced import priced
from synth_models.step.parts.profiles import kernel_nodes, workload_nodes
from synth_models.step.parts.reading import Assumed
from synth_models.step.parts.traces import read_groups, trace_nodes
from synth_models.step.parts.training import training_nodes
from synth_models.step.parts.written import read_written

_SOURCES = ("stages", "file", "kernels", "workloads", "traces", "step")
_NEEDED = {
    "stages": ("microbatches",),
    "workloads": ("workload", "group"),
}


class StepKeys(Keys):
    """A pipeline, a step in TOML, the kernels of a profile, a workload of AICB, or a step with something changed."""

    examples = (
        "stages=4 microbatches=8 schedule=1f1b",
        "file=STEP.toml",
        "file=KINETO.json bandwidth=50GB/s",
        "kernels=KERNELS.csv",
        "workloads=AICB.csv workload=GPT13B group=8 bandwidth=300GB/s latency=2us",
        "traces=TRACE groups=GROUPS.json bandwidth=50GB/s",
        "step=STEP.json what_if=nvlink=2x,compute=0.9x",
        "step=STEP.json priced_by=RECORDS",
    )
    stages: Count | None = Field(None, description="stages of a pipeline, a rank each")
    microbatches: Count | None = Field(None, description="of a pipeline")
    schedule: Literal["1f1b", "gpipe", "zb"] | None = Field(
        None, description="1f1b (default); gpipe: all forward first; zb: weight gradients apart"
    )
    forward: Seconds | None = Field(None, description="seconds of a forward pass (default 1 ms; backward: twice)")
    file: InputFile | None = Field(
        None, description="TOML of layers and links; *.json of PyTorch's profiler (Kineto), a rank; *.goal"
    )
    kernels: InputFile | None = Field(None, description="CSV of kernels: stream,start_us,dur_us,class,kernel")
    workloads: InputFile | None = Field(None, description="CSV of AICB workloads, compute and collectives by phase")
    workload: str | None = Field(None, description="the beginning of a name in that table, or a part of it")
    traces: InputFile | None = Field(None, description="Chakra traces: PREFIX of PREFIX.<rank>.et, or one file")
    groups: InputFile | None = Field(None, description="of traces: JSON, ranks by the names of their groups")
    flops: Positive | None = Field(None, description="operations a second of a rank, for traces without durations")
    group: Count | None = Field(None, description="ranks of each collective of the workload, or of untold groups")
    bandwidth: Rate | None = Field(None, description="bytes/s of a rank's port (default 300 GB/s)")
    latency: Seconds | None = Field(None, description="seconds (default 2 us)")
    step: InputFile | None = Field(None, description="instance file of a step")
    priced_by: InputFile | None = Field(
        None, description="of that step: records of collectives on one machine (a folder), which they then take"
    )
    what_if: Listed | None = Field(
        None, description="changes of that step: LINK=2x (rate), compute=0.9x (seconds), overlap=full"
    )

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        given = [key for key in _SOURCES if key in values]
        if len(given) != 1:
            return [Fault("", f"give one of {', '.join(f'{key}=' for key in _SOURCES)}")]
        return [
            Fault(key, f"is missing: {given[0]}= needs {key}=")
            for key in _NEEDED.get(given[0], ())
            if key not in values
        ]


Made = tuple[dict[str, Any], str, list[str]]
"""What an instance holds, its name, and notes."""


def make(keys: StepKeys) -> StepInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    of = next(key for key in _SOURCES if getattr(keys, key) is not None)
    raw, name, notes = _MADE[of](keys)
    return keys.instance("step", StepInstance, name, notes=notes, **raw)


def _pipeline(keys: StepKeys) -> Made:
    schedule = keys.schedule or "1f1b"
    if 2 * (keys.stages or 1) * (keys.microbatches or 1) > MOST_NODES:
        raise InputError([Fault("stages", f"times microbatches must be at most {MOST_NODES // 2}", keys.stages, True)])
    nodes = pipeline(keys.stages or 1, keys.microbatches or 1, schedule, keys.forward or 1e-3)
    raw = {"links": [{"name": "free", "bandwidth": 1e15}], "nodes": nodes}
    return raw, f"{schedule}-p{keys.stages}-m{keys.microbatches}", []


def _written(keys: StepKeys) -> Made:
    assert keys.file is not None
    name = plain_name(keys.file.stem)
    if keys.file.path.suffix == ".json":
        nodes, notes = kineto_nodes(keys.file, "net")
        return {"links": [_link(keys)], "nodes": nodes}, name, notes
    if keys.file.path.suffix == ".goal":
        raw, notes = goal_nodes(keys.file, "net")
        return {"links": [_link(keys)], **raw}, name, notes
    step = read_written(keys.file)
    links = [{"name": key, **port.model_dump()} for key, port in step.links.items()]
    alike = step.parallel.tp * step.parallel.dp
    return {"links": links, "alike": alike, "nodes": training_nodes(step)}, name, []


def _kernels(keys: StepKeys) -> Made:
    assert keys.kernels is not None
    note = "Kernels that computed at once are one; what ended before a kernel of the other kind, goes before"
    return kernel_nodes(keys.kernels), keys.kernels.stem, [note]


def _workload(keys: StepKeys) -> Made:
    assert keys.workloads is not None
    name, nodes = workload_nodes(keys.workloads, keys.workload or "", keys.group or 2)
    note = "The table has sums of phases: computation is spread evenly between collectives"
    return {"links": [_link(keys)], "nodes": nodes}, name, [note]


def _traces(keys: StepKeys) -> Made:
    assert keys.traces is not None
    assumed = Assumed(read_groups(keys.groups), keys.group, keys.flops, "net")
    raw, notes = trace_nodes(keys.traces.path, assumed)
    return {"links": [_link(keys)], **raw}, plain_name(keys.traces.name.removesuffix(".et")), notes


def _link(keys: StepKeys) -> dict[str, Any]:
    """The one class of links of what names none."""
    latency = 2e-6 if keys.latency is None else keys.latency
    return {"name": "net", "bandwidth": keys.bandwidth or 300e9, "latency": latency}


def _changed(keys: StepKeys) -> Made:
    assert keys.step is not None
    step = parse(parse_json(keys.step.data, str(keys.step)), StepInstance, str(keys.step))
    raw, notes = step.model_dump(mode="json"), list[str]()
    if keys.priced_by is None and keys.what_if is None:
        raise InputError([Fault("step", "needs what_if= or priced_by=")])
    if keys.priced_by is not None:
        raw, notes = priced(raw, keys.priced_by.path)
    if keys.what_if is not None:
        raw = changed(raw, keys.what_if, str(keys.step))
    name = f"{step.name}{'-priced' * (keys.priced_by is not None)}{'-what-if' * (keys.what_if is not None)}"
    return {key: raw[key] for key in ("links", "alike", "classes", "groups", "nodes")}, name, notes


_MADE: dict[str, Callable[[StepKeys], Made]] = {
    "stages": _pipeline, "file": _written, "kernels": _kernels, "workloads": _workload, "traces": _traces,
    "step": _changed,
}  # fmt: skip
