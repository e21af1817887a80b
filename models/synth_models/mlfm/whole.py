"""All phases in one model (``decompose=off``): the horizon loop that ``cpsat`` and ``ilp`` share.

The number of phases starts at the load bound and grows by one after each proof that it is too small. For routes over
two spines such a proof says nothing about congested schedules, which the objective also admits, so the bound that is
reported stays the load bound there; for one spine König makes the two the same (:mod:`.check`).
"""

from __future__ import annotations

from collections.abc import Callable

from synth.errors import SizeLimitError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bound import lower_bound
from synth_models.mlfm.colouring import LeafPhases, name_servers
from synth_models.mlfm.decomposition import sized_problem
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.routes import LeafProblem, cut_off

MAX_VARIABLES = 400_000

Decision = tuple[str, LeafPhases | None]


def whole_phases(
    instance: MLFMInstance, options: RunOptions, decide: Callable[[LeafProblem, int, RunOptions], Decision]
) -> Outcome:
    """Try numbers of phases from the bound upwards until one is possible."""
    problem = sized_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    bound = lower_bound(instance, problem, options.remaining())
    proven, words = bound.phases, bound.words
    horizon = options.method.get("horizon")
    phases = horizon if horizon is not None else bound.phases
    while True:
        options.progress.note(bound=proven)
        if phases * (problem.routes + problem.leaves) > MAX_VARIABLES:
            raise SizeLimitError(
                f"the model of {phases} phases has more than {MAX_VARIABLES} variables; use decompose=on"
            )
        status, found = decide(problem, phases, options)
        if found is not None:
            solution = name_servers(instance, problem, found)
            optimal, message = phases <= proven, None
            if not optimal and horizon is None:
                message = f"below {phases} no congestion-free phases exist; the bound also admits congested ones"
            return Outcome(
                "optimal" if optimal else "finished",
                solution=solution,
                bound=float(proven),
                bound_proof=words,
                message=message,
            )
        if status == "impossible":
            refuted = f"{phases} phases proven impossible by exhaustive search"
            if problem.one_spine and phases + 1 > proven:
                proven, words = phases + 1, refuted
            if horizon is not None:
                return Outcome("infeasible", bound=float(proven), bound_proof=words, message=refuted)
            phases += 1
            continue
        return Outcome(
            "time_limit", bound=float(proven), bound_proof=words, message=f"{phases} phases neither reached nor refuted"
        )
