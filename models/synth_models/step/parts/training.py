"""Nodes of a training step that was written down: a rank a stage of the pipeline, which stands for tp x dp alike.

Forward, a layer is attention, allreduce, experts' or dense part, allreduce over tp (Shoeybi et al. 2019); with ep > 1
an alltoall stands before and after its second part. Backward is the same the other way round. A stage runs its passes
in the order of 1F1B or GPipe; a collective may run on while the next pass computes. When the last microbatch has come
back through a layer, its gradients are added up over dp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from synth_models.step.parts.pipelines import as_issued, passes_of
from synth_models.step.parts.written import Written


def training_nodes(step: Written) -> list[dict[str, Any]]:
    """All nodes in the order in which they could start first."""
    nodes: list[dict[str, Any]] = []
    stages, many = step.parallel.pp, step.microbatches
    for stage in range(stages):
        computed = ""  # the last computation of the stage
        for kind, i in passes_of(many if step.schedule == "gpipe" else stages - stage, many):
            came = _arrival(step, nodes, kind, i, stage)
            for node in _pass(step, kind, i, stage, came):
                if node["kind"] == "computation":
                    if computed and computed not in node["after"]:
                        node["after"].append(computed)
                    computed = node["name"]
                nodes.append(node)
    return as_issued(nodes, [_long(step, node) for node in nodes])


def _arrival(step: Written, nodes: list[dict[str, Any]], kind: str, i: int, stage: int) -> list[str]:
    """What a pass waits for: the message from the stage before it, which is added, or its own forward pass."""
    own = [_end(step, "f", i, stage)] if kind == "b" else []
    other = stage - 1 if kind == "f" else stage + 1
    if not 0 <= other < step.parallel.pp:
        return own
    name = f"{kind}{i}.{other}-{stage}"
    nodes.append(
        {"kind": "operation", "name": name, "collective": "send", "bytes": step.moved,
         "ranks": sorted((stage, other)), "link": step.link("pp"), "after": [_end(step, kind, i, other)]}
    )  # fmt: skip
    return [*own, name]


def _end(step: Written, kind: str, i: int, stage: int) -> str:
    """The last node of a pass."""
    layer = step.layers // step.parallel.pp - 1 if kind == "f" else 0
    last = "reduce2" if step.parallel.tp > 1 else "collect" if kind == "f" and step.parallel.ep > 1 else "part2"
    return f"{kind}{i}.{stage}.{layer}.{last}"


def _pass(step: Written, kind: str, i: int, stage: int, came: list[str]) -> Iterator[dict[str, Any]]:
    """The nodes of one pass of a stage."""
    layers, last = step.layers // step.parallel.pp, list(came)
    seconds = step.passes[kind == "b"] / 2
    for layer in range(layers) if kind == "f" else reversed(range(layers)):
        place = f"{kind}{i}.{stage}.{layer}"
        for part in (1, 2):
            sparse = step.parallel.ep > 1 and part == (2 if kind == "f" else 1)
            work = {"kind": "computation", "name": f"{place}.part{part}", "rank": stage, "seconds": seconds}
            chain = [work]
            if sparse:
                chain = [
                    _collective(step, f"{place}.spread", "alltoall", "ep", stage),
                    work,
                    _collective(step, f"{place}.collect", "alltoall", "ep", stage),
                ]
            if step.parallel.tp > 1:
                chain.append(_collective(step, f"{place}.reduce{part}", "allreduce", "tp", stage))
            for node in chain:
                yield node | {"after": last}
                last = [str(node["name"])]
        if kind == "b" and i == step.microbatches - 1 and step.parallel.dp > 1:
            yield _collective(step, f"{place}.gradients", "allreduce", "dp", stage) | {"after": [f"{place}.part2"]}


def _collective(step: Written, name: str, kind: str, axis: str, stage: int) -> dict[str, Any]:
    """A collective of the rank's group along an axis."""
    moved = {"tp": step.moved, "ep": step.moved * step.experts, "dp": step.held}[axis]
    return {"kind": "operation", "name": name, "collective": kind, "bytes": moved, "ranks": [stage],
            "group": getattr(step.parallel, axis), "link": step.link(axis)}  # fmt: skip


def _long(step: Written, node: dict[str, Any]) -> float:
    """About how long a node takes: for the order of issue alone."""
    return float(node["seconds"] if "seconds" in node else node["bytes"] / step.links[node["link"]].bandwidth)
