"""All phases in one model (``decompose=off``): how ``cpsat`` and ``ilp`` decide a number of phases then.

The number starts at the bound by links and ranks and grows by one after each proof that it is too small. Such a proof
says that no P congestion-free phases do; nor do fewer, as an empty phase may be added to them. The objective counts
congestion-free phases, a congested one as those it splits into (``check/replay.py``), so P + 1 is a bound for every
schedule, whatever its routes. It is the solver's word.
"""

from __future__ import annotations

from collections.abc import Callable

from synth.errors import SizeLimitError
from synth.family import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, Proven, fewest
from synth_models.mlfm.bounds.load import lower_bound
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, cut_off
from synth_models.mlfm.programs.colouring import LeafPhases, name_servers
from synth_models.mlfm.programs.decomposition import sized_problem

MAX_VARIABLES = 400_000

# ``found`` with phases between leaves, ``impossible`` (proven) or ``limit``
Decided = tuple[str, LeafPhases | None]


def whole_phases(
    instance: MLFMInstance,
    options: RunOptions,
    decide_whole: Callable[[LeafProblem, int, RunOptions], Decided],
    by: str,
) -> Outcome:
    """Numbers of phases from the bound upwards until one is possible; ``by`` names the solver."""
    problem = sized_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    bound = lower_bound(instance, problem, options.remaining())

    def decide(phases: int) -> Decision:
        if phases * (problem.routes + problem.leaves) > MAX_VARIABLES:
            raise SizeLimitError(
                f"the model of {phases} phases has more than {MAX_VARIABLES} variables; use decompose=on"
            )
        status, found = decide_whole(problem, phases, options)
        if found is not None:
            return Decision("feasible", name_servers(instance, problem, found))
        if status == "impossible":
            return Decision("infeasible", proof=f"{phases} phases proven impossible by exhaustive search ({by})")
        return Decision("limit")

    proven, horizon = Proven(bound.phases, bound.words, bound.certificate), options.method.get("horizon")
    return fewest(decide, proven, options, by=by, unit="phases", size=lambda s: int(s.phases), horizon=horizon)
