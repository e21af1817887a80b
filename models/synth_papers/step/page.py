"""Whole training steps: AICB's seven workloads, DeepSeek's published profile, generated traces, a pipeline; what each
takes, what it takes at least, and how much of it waits for communication.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pandas as pd

from synth.api import make, solve
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import TICKS, StepInstance, size

METHODS: dict[str, Mapping[str, str]] = {"bound": {}, "issued": {}, "longest_tail": {}, "search": {"moves": "60"}}
KERNELS, WORKLOADS, GENERATED = "step/deepseek_train_kernels.csv", "step/aicb_simai_workloads.csv", "step/generated"
TRACES = ("llama8", "moe8", "llama64", "moe64", "llama512", "moe512")
PORT, FLOPS = "50GB/s", 400e12  # of a rank, for the generated traces
GROUP, SMALL = 8, 2  # ranks of a group of AICB's files; of those whose name says tp2
NEAR = 0.05  # a gap that the answer counts as small


def reproduce(page: Reproduction) -> None:
    """Solve every step; the answer and the table."""
    pipeline = page.keep(cast("StepInstance", make("step", stages=4, microbatches=8, schedule="zb")), "")
    rows = [_row("zero-bubble pipeline, 4 stages, 8 microbatches", pipeline, _kept(page, pipeline))]
    if path := page.real_data(KERNELS, "DeepSeek's profile"):
        profile = page.keep(cast("StepInstance", make("step", kernels=path)), "")
        rows.append(_row("DeepSeek-V3, 983 kernels, EP 64", profile, _kept(page, profile)))
    if path := page.real_data(WORKLOADS, "AICB's workloads"):
        rows += [_row(name, step, _solved(step)) for name, step in _workloads(path, page.quick)]
    for name in TRACES[: 2 if page.quick else None]:
        if page.real_data(f"{GENERATED}/{name}/t.0.et", f"the generated traces {name}"):
            folder = page.data / GENERATED / name
            step = cast("StepInstance", make("step", traces=folder / "t", groups=folder / "t.json", bandwidth=PORT,
                                             flops=FLOPS, name=name))  # fmt: skip
            rows.append(_row(f"{name} (generated)", step, _solved(step)))
        page.say(f"{name} done")
    table = pd.DataFrame(rows)
    page.opens(_answer(table))
    page.table("Steps", _in_words(table))
    page.note(
        "Issued: as programs do it, in the order of issue, all collectives of a rank on one stream, by rings. Exposed: "
        "the best value less what its busiest rank computes. Could buy: the most that better communication gains: 1 - "
        "(certified bound of the step if its communication took no time) / value."
    )
    page.note(
        f"AICB's files (SimAI) tell compute and collectives by phase: one chain, groups of {GROUP} ranks ({SMALL} "
        "where the name says tp2), ports as `synth make step` assumes them. DeepSeek's communication is as long "
        "as measured."
    )
    page.note(
        f"Traces: symbolic_tensor_graph (3a7f49c, MIT) for llama and MoE, ports of {PORT}, {FLOPS / 1e12:.0f} Tflop/s "
        "a rank; names end in the number of ranks. Ranks that are alike are one class. Records of the pipeline and of "
        "the profile are kept; `synth solve` makes the others."
    )


def _workloads(path: Path, quick: bool) -> Iterator[tuple[str, StepInstance]]:
    """AICB's workloads by name."""
    names = sorted({row["file"] for row in csv.DictReader(io.StringIO(path.read_text()))})
    for name in names[: 1 if quick else None]:
        group = SMALL if "_tp2_" in name else GROUP
        yield (
            name.removesuffix(".txt"),
            cast("StepInstance", make("step", workloads=path, workload=name, group=group)),
        )


def _kept(page: Reproduction, step: StepInstance) -> dict[str, Record]:
    methods = {name: options for name, options in METHODS.items() if name != "longest_tail"}
    return {record["method"]: record for _, record in page.solve([step], methods, time_limit=None)}


def _solved(step: StepInstance) -> dict[str, Record]:
    return {name: solve(step, name, time_limit=None, options=options) for name, options in METHODS.items()}


def _row(name: str, step: StepInstance, records: Mapping[str, Record]) -> dict[str, Any]:
    """What is known of a step, in seconds."""
    values = {name: record.value for name, record in records.items() if record.value is not None}
    best = min(values, key=lambda name: values[name])
    bound = records["bound"].bound
    facts = records[best]["verified"]["facts"]
    assert bound is not None
    return {
        "step": name, "ranks": size(step), "classes": len(step.classes) or "–", "nodes": len(step.nodes),
        "issued": values["issued"], "value": values[best], "by": best, "bound": bound,
        "gap": 1 - bound / values[best], "exposed": facts["exposed_s"], "buys": 1 - _silent(step) / values[best],
    }  # fmt: skip


def _silent(step: StepInstance) -> float:
    """The least time of the step in seconds, if communication took none."""
    raw = step.model_dump(mode="json", exclude_none=True)
    rows = [row | {"seconds": 0.0} if row["kind"] == "operation" else row for row in raw["nodes"]]
    return strongest(step.model_copy(update={"nodes": rows}))[0] / TICKS


def _answer(rows: pd.DataFrame) -> str:
    near = int((rows["gap"] <= NEAR).sum())
    told = f"{near} of {len(rows)} steps end at most {percent(NEAR)} above a certified bound."
    for row in rows[rows["step"].str.startswith("DeepSeek")].to_dict("records"):
        least, buys = shown(row["bound"], "s"), percent(row["buys"])
        told += f" DeepSeek's published step takes at least {least}; communication could buy at most {buys} of it."
    saved = 1 - rows["value"] / rows["issued"]
    return f"{told} Order, overlap and direct algorithms save up to {percent(float(saved.max()))} of a step as issued."


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    seconds = {name: [shown(value, "s") for value in rows[name]] for name in ("issued", "value", "bound", "exposed")}
    return pd.DataFrame(
        {
            **{name: rows[name] for name in ("step", "ranks", "classes", "nodes")},
            "issued": seconds["issued"], "value": seconds["value"], "by": rows["by"], "bound": seconds["bound"],
            "gap": [percent(float(value)) for value in rows["gap"]], "exposed": seconds["exposed"],
            "could buy": [percent(float(value)) for value in rows["buys"]],
        }
    )  # fmt: skip
