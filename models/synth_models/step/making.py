"""``synth make step``: pipelines in closed form, published profiles and workloads, and changes of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.instance import parse_json
from synth.making import Count, Keys, Listed, Rate, Seconds
from synth.text.input_file import InputFile
from synth_models.step.instance import StepInstance
from synth_models.step.parts.changes import changed
from synth_models.step.parts.pipelines import pipeline
from synth_models.step.parts.profiles import kernel_nodes, workload_nodes

_SOURCES = ("stages", "kernels", "workloads", "step")
_NEEDED = {"stages": ("microbatches",), "workloads": ("workload", "group"), "step": ("what_if",)}


class StepKeys(Keys):
    """A pipeline, the kernels of a profile, a workload of AICB, or a step with something changed."""

    examples = (
        "stages=4 microbatches=8 schedule=1f1b",
        "kernels=KERNELS.csv",
        "workloads=AICB.csv workload=GPT13B group=8 bandwidth=300GB/s latency=2us",
        "step=STEP.json what_if=nvlink=2x,compute=0.9x",
    )
    stages: Count | None = Field(None, description="stages of a pipeline, a rank each")
    microbatches: Count | None = Field(None, description="of a pipeline")
    schedule: Literal["1f1b", "gpipe", "zb"] | None = Field(
        None, description="1f1b (default); gpipe: all forward first; zb: weight gradients apart"
    )
    forward: Seconds | None = Field(None, description="seconds of a forward pass (default 1 ms; backward: twice)")
    kernels: InputFile | None = Field(None, description="CSV of kernels: stream,start_us,dur_us,class,kernel")
    workloads: InputFile | None = Field(None, description="CSV of AICB workloads, compute and collectives by phase")
    workload: str | None = Field(None, description="the beginning of a name in that table, or a part of it")
    group: Count | None = Field(None, description="ranks of each collective of the workload")
    bandwidth: Rate | None = Field(None, description="bytes/s of a rank's port (default 300 GB/s)")
    latency: Seconds | None = Field(None, description="seconds (default 2 us)")
    step: InputFile | None = Field(None, description="instance file of a step")
    what_if: Listed | None = Field(
        None, description="changes of that step: LINK=2x (rate), compute=0.9x (seconds), overlap=full"
    )

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        given = [key for key in _SOURCES if key in values]
        if len(given) != 1:
            return [Fault("", "give stages=, kernels=, workloads= or step=, one of the four")]
        return [
            Fault(key, f"is missing: {given[0]}= needs {key}=")
            for key in _NEEDED.get(given[0], ())
            if key not in values
        ]


def make(keys: StepKeys) -> StepInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    notes: list[str] = []
    if keys.stages is not None:
        schedule = keys.schedule or "1f1b"
        nodes = pipeline(keys.stages, keys.microbatches or 1, schedule, keys.forward or 1e-3)
        raw: dict[str, Any] = {"links": [{"name": "free", "bandwidth": 1e15}], "nodes": nodes}
        name = f"{schedule}-p{keys.stages}-m{keys.microbatches}"
    elif keys.kernels is not None:
        raw, name = kernel_nodes(keys.kernels), keys.kernels.stem
        notes.append("Kernels that computed at once are one; what ended before a kernel of the other kind, goes before")
    elif keys.workloads is not None:
        link = {"bandwidth": keys.bandwidth or 300e9, "latency": 2e-6 if keys.latency is None else keys.latency}
        name, nodes = workload_nodes(keys.workloads, keys.workload or "", keys.group or 2)
        raw = {"links": [{"name": "net"} | link], "nodes": nodes}
        notes.append("The table has sums of phases: computation is spread evenly between collectives")
    else:
        assert keys.step is not None
        read = parse_json(keys.step.data, str(keys.step))
        if not isinstance(read, dict):
            raise InputError("an instance is one JSON object", str(keys.step))
        raw = changed(read, keys.what_if or "", str(keys.step))
        name = f"{raw.pop('name', 'step')}-what-if"
        raw = {key: raw[key] for key in ("links", "alike", "nodes") if key in raw}
    return keys.instance("step", StepInstance, name, notes=notes, **raw)
