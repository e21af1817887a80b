"""Program ``min_congestion``: for a fixed number of phases, the smallest worst link load.

Beyond the paper, which asks for load 1 in N phases. The equations are (1) and (2) of ``programs/equations.py`` with P
given and a load L >= 1 minimised: a link carries at most P * L flows, which is (2) for P * L phases.

For one-spine routes the least such L is the answer: balanced colouring splits w into P phases with at most L flows on
any link (``programs/colouring.py``). With two-spine routes it is a bound that packing has to reach. The message of the
outcome names L and its proof; the check recounts L (``worst_link_load``) and gives time and throughput under the
instance's bandwidth, message size and latency. The record's objective counts a congested phase as the congestion-free
ones it splits into, as for all methods. That no flows fit into P phases of load L refutes P * L congestion-free phases,
on any of which a link would carry one flow at most.
"""

from __future__ import annotations

from dataclasses import replace

from synth.clock.progress import Progress
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, HorizonProgram, Proven, fewest
from synth_models.mlfm.bounds.load import lower_bound, turns_in_words
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import cut_off, leaf_problem
from synth_models.mlfm.programs.cpsat import count_flows
from synth_models.mlfm.programs.decomposition import sized_problem, spread_flows

EXTRA_LOADS = 20  # how far above the least load packing is tried


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``min_congestion``. Infeasible for fewer phases than servers and when a pair is cut off."""
    leaves, problem = leaf_problem(instance), sized_problem(instance)
    given = options.method.get("phases")
    phases = problem.busiest if given is None else int(given)
    reason = cut_off(instance, leaves)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    if phases < problem.busiest:
        proof = turns_in_words(instance)
        message = f"{phases} phases are too few: {proof.removeprefix('ranks: ')}"
        return Outcome("infeasible", None, float(problem.busiest), proof, {"binding": "ranks"}, message)
    bound = lower_bound(instance, leaves, options)
    proven = Proven(max(1, -(-bound.phases // phases)), bound.words, bound.certificate)
    refuted = 0

    def decide(load: int) -> Decision:
        nonlocal refuted
        counted = count_flows(problem, phases * load, options)
        if counted.status == "impossible":
            refuted = load
            proof = f"no whole flows per route fit into {phases} phases with load {load} (exhaustive search by CP-SAT)"
            return Decision("infeasible", proof=proof)
        if counted.flows is None:
            return Decision("limit")
        solution = spread_flows(instance, problem, counted.flows, phases, options, load)
        if solution is not None:
            return Decision("feasible", (load, solution))
        return Decision("limit" if options.out_of_time() else "restricted")

    # this search counts loads, the record's progress phases: it gets a note book of its own
    quiet = replace(options, progress=Progress())
    program = HorizonProgram(decide, "CP-SAT", "flows on the worst link", size=lambda pair: int(pair[0]))
    found = fewest(program, proven, quiet, most=proven.steps + EXTRA_LOADS)
    outcome = Outcome("time_limit", None, float(bound.phases), bound.words, bound.certificate)
    if refuted:  # then phases * refuted is at least the bound by links and ranks
        outcome.bound, outcome.certificate = float(phases * refuted + 1), None
        outcome.bound_proof = (
            f"no whole flows per route fit into {phases * refuted} phases (exhaustive search by CP-SAT)"
        )
    least, why = int(found.bound or 1), found.bound_proof or ""
    if found.solution is None:
        outcome.message = f"no schedule with {phases} phases within the limit; its worst link load is at least {least}"
    else:
        load, outcome.solution = found.solution
        outcome.termination, outcome.message = "finished", _message(load, least, phases, why)
    return outcome


def _message(load: int, least: int, phases: int, proof: str) -> str:
    if load > least:
        return f"worst link load {load} in {phases} phases; at least {least} is needed ({proof})"
    if load == 1:
        return f"worst link load 1 in {phases} phases, the smallest there is"
    return f"worst link load {load} in {phases} phases, proven smallest: {proof}"
