"""What our records say of the Harvest paper; `synth reproduce findings` shows it."""

from __future__ import annotations

from synth.findings.finding import Case, Finding, within
from synth_papers.harvest.errata import errata

PAPER = "Harvest (Rahman et al.)"


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, f"harvest/{name}") for name in names)


FINDINGS = (
    Finding(
        "harvest-all-topologies", "settles", PAPER, "Algorithm 1 over candidate topologies, section 6",
        "The paper's evaluation chooses among candidate topologies and does not say what that costs. On "
        "{cases} workloads it costs nothing: no sequence of topologies whatever is quicker than the schedule found "
        "over candidates by more than {largest_gap} of its time.",
        _cases(
            "recursive-doubling-64-p1", "recursive-doubling-64-p1-cheap", "recursive-doubling-64-p1-dear",
            "swing-torus-64-8x8-p4", "swing-torus-16-4x4-p4", "alltoall-direct-16-p2", "bruck-allgather-16-both-p1",
            "binary-broadcast-31-p2", "ring-16-p1",
        ),
        (within(1e-9),), sources=("reading",),
    ),
    Finding(
        "harvest-appendix-a", "settles", PAPER, "Equation 5, appendix A",
        "The program of appendix A with its errata corrected finds the optima over all topologies of {cases} workloads "
        "of up to 8 GPUs, within {largest_gap}. The paper prints none.",
        _cases(
            "recursive-doubling-8-p1", "recursive-doubling-8-p2", "recursive-doubling-8-static-p1",
            "recursive-doubling-8-static-p2", "recursive-doubling-8-backwards-p1",
            "recursive-doubling-8-reduce-scatter-p1", "recursive-doubling-8-reduce-scatter-p2",
            "recursive-doubling-8-reduce-scatter-static-p1", "recursive-doubling-8-reduce-scatter-static-p2",
            "swing-8-p1", "swing-8-p2", "swing-8-static-p1", "swing-8-static-p2", "bruck-allgather-8-p1",
            "bruck-allgather-8-p2", "bruck-allgather-8-static-p1", "bruck-alltoall-8-p1", "binomial-broadcast-8-p1",
            "binomial-broadcast-8-p2", "binomial-broadcast-8-static-p1", "binomial-broadcast-8-static-p2",
            "recursive-doubling-4-p1", "demand-6-p2",
        ),
        (within(1e-4),), sources=("reading",),
    ),
    Finding("harvest-errata", "corrects", PAPER, "errata", errata=errata),
)  # fmt: skip
