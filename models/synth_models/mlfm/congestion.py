"""Program ``min_congestion``: for a fixed number of phases, the smallest worst link load.

Beyond the paper, which asks for load 1 in N phases. Symbols as in :mod:`.cpsat`; here P is given and L minimised:

(meet_demand)    the flows w_r on the routes of every pair of leaves add up to its demand
(link_capacity)  no link carries more than P * L flows

For one-spine routes the least such L is the answer: balanced colouring splits w into P phases with at most L flows on
any link (:mod:`.colouring`). With two-spine routes it is a bound that packing has to reach. The message of the
outcome names L and its proof; the check recounts L (``worst_link_load``) and gives time and throughput under the
instance's bandwidth, message size and latency. The record's objective counts a phase of load L as L phases, as for
all methods.
"""

from __future__ import annotations

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bound import Bound, lower_bound
from synth_models.mlfm.cpsat import count_flows
from synth_models.mlfm.decomposition import sized_problem, spread_flows
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.routes import cut_off


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``min_congestion``. Infeasible for fewer phases than servers and when a pair is cut off."""
    problem = sized_problem(instance)
    given = options.method.get("phases")
    phases = problem.ranks if given is None else int(given)
    reason = cut_off(instance, problem)
    if reason is None and phases < problem.ranks:
        reason = f"{phases} phases are too few: every server sends {problem.ranks} transfers, one a phase"
    if reason is not None:
        return Outcome("infeasible", message=reason)
    bound = lower_bound(instance, problem, options.remaining())
    load, proof = max(1, -(-bound.phases // phases)), bound.words
    while True:
        counted = count_flows(problem, phases * load, options)
        if counted.status != "impossible":
            break
        proof = f"no whole flows per route fit into {phases} phases with load {load} (exhaustive search)"
        load += 1
    least = load
    while counted.flows is not None and not options.out_of_time():
        solution = spread_flows(instance, problem, counted.flows, phases, options, load)
        if solution is not None:
            return Outcome(
                "finished", solution=solution, bound=float(bound.phases), bound_proof=bound.words,
                message=_message(load, least, phases, bound, proof),
            )  # fmt: skip
        load += 1
        counted = count_flows(problem, phases * load, options)
    message = (
        f"no schedule with {phases} phases and worst link load {load} within the limit; at least {least} is needed"
    )
    return Outcome("time_limit", bound=float(bound.phases), bound_proof=bound.words, message=message)


def _message(load: int, least: int, phases: int, bound: Bound, proof: str) -> str:
    if load > least:
        return f"worst link load {load} in {phases} phases; at least {least} is needed ({proof})"
    if load == 1:
        return f"worst link load 1 in {phases} phases, the smallest there is"
    return f"worst link load {load} in {phases} phases, proven smallest: {proof}"
