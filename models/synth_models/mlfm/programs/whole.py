"""All phases in one model (``decompose=off``): how ``cpsat`` and ``ilp`` decide a number of phases then.

The number starts at the bound by links and ranks and grows by one after each proof that it is too small. Such a proof
says that no P congestion-free phases do; nor do fewer, as an empty phase may be added to them. The objective counts
congestion-free phases, a congested one as those it splits into (``check/replay.py``), so P + 1 is a bound for every
schedule, whatever its routes. It is the solver's word.
"""

from __future__ import annotations

from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, HorizonProgram, Proven, fewest
from synth_models.mlfm.bounds.load import lower_bound
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import cut_off, leaf_problem
from synth_models.mlfm.programs.colouring import name_servers
from synth_models.mlfm.programs.decomposition import MAX_VARIABLES, DecideWhole, exhausted, sized_problem


def whole_phases(
    instance: MLFMInstance,
    options: RunOptions,
    decide_whole: DecideWhole,
    by: str,
) -> Outcome:
    """Numbers of phases from the bound upwards until one is possible; ``by`` names the solver."""
    leaves, problem = leaf_problem(instance), sized_problem(instance)
    reason = cut_off(instance, leaves)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    bound = lower_bound(instance, leaves, options)

    def decide(phases: int) -> Decision:
        if phases * (problem.routes + problem.leaves) > MAX_VARIABLES:
            raise SizeLimitError(
                f"the model of {phases} phases has more than {MAX_VARIABLES} variables; use decompose=on"
            )
        status, found = decide_whole(problem, phases, options)
        if found is not None:
            return Decision("feasible", name_servers(instance, problem, found))
        if status == "impossible":
            return Decision("infeasible", proof=exhausted(phases, by))
        return Decision("limit")

    proven, horizon = Proven(bound.phases, bound.words, bound.certificate), options.method.get("horizon")
    program = HorizonProgram(decide, by, unit="phases", size=lambda s: int(s.phases), hold=lambda found: found)
    return fewest(program, proven, options, horizon=horizon)
