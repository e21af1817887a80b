"""Step 3: the check. It knows the instance and the solution, no method; it recomputes the objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth.method import Verdict
from synth.text.untrusted import whole
from toy_broadcast.instance import ToyInstance
from toy_broadcast.solution import Solution


def check_solution(instance: ToyInstance, solution: Solution) -> Verdict:
    """Replay the sends round by round."""
    informed, faults = {0}, []
    rounds = max((step for step, _, _ in solution), default=0)
    for now in range(1, rounds + 1):
        sends = [(sender, receiver) for step, sender, receiver in solution if step == now]
        senders = [sender for sender, _ in sends]
        faults += [f"round {now}: node {v} sends twice" for v in sorted({v for v in senders if senders.count(v) > 1})]
        faults += [f"round {now}: node {v} sends what it does not have" for v in senders if v not in informed]
        informed |= {receiver for _, receiver in sends}
    faults += [f"node {v} is never informed" for v in range(instance.nodes) if v not in informed]
    return Verdict(float(rounds), {"rounds": rounds}, faults)


def check_bound(instance: ToyInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The number of informed nodes at most doubles in a round: ``2^(T-1) < nodes`` proves T rounds."""
    doublings = whole(certificate, "doublings", 0, 64)
    holds = bound == doublings and (doublings == 0 or 2 ** (doublings - 1) < instance.nodes)
    return [] if holds else [f"{doublings} doublings do not prove {bound:g} rounds"]
