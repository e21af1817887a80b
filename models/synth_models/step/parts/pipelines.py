"""Pipelines of equal stages: nodes in the order in which each stage issues them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synth_models.step.parts.order import ordered


def pipeline(stages: int, microbatches: int, schedule: str, forward: float) -> list[dict[str, Any]]:
    """Forward passes ``f``, backward passes ``b`` of twice their time (of ``zb``: once, and weight gradients ``w``
    once). ``1f1b`` and ``gpipe`` fix the order of each stage (Narayanan et al. 2021, Huang et al. 2019); ``zb``
    leaves it open (Qi et al. 2024). Messages take no time."""
    nodes: list[dict[str, Any]] = []
    for stage in range(stages):
        last = ""
        for kind, i in passes_of(microbatches if schedule == "gpipe" else stages - stage, microbatches):
            name = f"{kind}{i}.{stage}"
            before = [f"f{i}.{stage}"] if kind == "b" else []
            neighbour = stage - 1 if kind == "f" else stage + 1
            if 0 <= neighbour < stages:
                before.append(f"{kind}{i}.{neighbour}-{stage}")
                nodes.append(
                    {"kind": "operation", "name": before[-1], "collective": "send", "bytes": 0,
                     "ranks": sorted((stage, neighbour)), "link": "free", "seconds": 0.0,
                     "after": [f"{kind}{i}.{neighbour}"]}
                )  # fmt: skip
            if last and schedule != "zb" and last not in before:
                before.append(last)
            seconds = forward if kind == "f" or schedule == "zb" else 2 * forward
            nodes.append({"kind": "computation", "name": name, "rank": stage, "seconds": seconds, "after": before})
            if kind == "b" and schedule == "zb":
                nodes.append(
                    {"kind": "computation", "name": f"w{i}.{stage}", "rank": stage, "seconds": seconds, "after": [name]}
                )
            last = name
    return as_issued(nodes, [node["seconds"] for node in nodes])


def passes_of(warm: int, microbatches: int) -> list[tuple[str, int]]:
    """Passes of a stage: so many forward, then one back and one forward in turn."""
    ahead = min(warm, microbatches)
    order = [("f", i) for i in range(ahead)]
    for i in range(microbatches):
        order += [("b", i)] + ([("f", ahead + i)] if ahead + i < microbatches else [])
    return order


def as_issued(nodes: list[dict[str, Any]], long: Sequence[float]) -> list[dict[str, Any]]:
    """The nodes, of which each takes so long, by the moment at which they could start first; a stage's own order stays
    where it is fixed."""
    number = {node["name"]: i for i, node in enumerate(nodes)}
    before = [[number[name] for name in node["after"]] for node in nodes]
    head, order = [0.0] * len(nodes), ordered(before, [0.0] * len(nodes))
    for i in order:
        head[i] = max((head[k] + long[k] for k in before[i]), default=0.0)
    place = {i: position for position, i in enumerate(order)}
    return [nodes[i] for i in sorted(order, key=lambda i: (head[i], place[i]))]
