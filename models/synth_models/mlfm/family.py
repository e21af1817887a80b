"""The mlfm family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Method, Objective, by_name
from synth.options import Parameter, read_flag, read_int

_MODULES = "synth_models.mlfm"
_DECOMPOSE = Parameter(
    "decompose",
    read_flag,
    True,
    "count flows per route first, then colour them (exact for one-spine routes); off: one model",
)
_HORIZON = Parameter("horizon", read_int(1), None, "decide this number of phases only: phases, or proven infeasible")
_AS_PRINTED = Parameter("as_printed", read_flag, False, "apply the printed rule to any block, the check judges")
_PHASES = Parameter("phases", read_int(1), None, "number of phases; the number of servers N when not given")

FAMILY = Family(
    name="mlfm",
    title="MLFM: congestion-free all-to-all on part of a multi-layer full mesh",
    citation="Congestion-free all-to-all communication using part of the servers on the Multi-layer full mesh topology",
    objective=Objective("phases", "phases"),
    instance=f"{_MODULES}.instance:MLFMInstance",
    keys=f"{_MODULES}.making:MLFMKeys",
    make=f"{_MODULES}.making:make",
    check=f"{_MODULES}.check.replay:check_phases",
    check_bound=f"{_MODULES}.check.replay:check_bound",
    pack=f"{_MODULES}.solution:pack",
    unpack=f"{_MODULES}.solution:unpack",
    table=f"{_MODULES}.views.describe:table",
    describe=f"{_MODULES}.views.describe:describe",
    plot=f"{_MODULES}.views.describe:plot",
    frames=f"{_MODULES}.views.frames:frames",
    paper=f"{_MODULES}.paper.page:reproduce",
    suited=f"{_MODULES}.instance:suited",
    published=("closed_form",),
    default_methods=("bound", "closed_form", "shift", "cpsat"),
    methods=by_name(
        Method("bound", "bound", "strongest of N, forced links, leaf degree and fractional routing",
               f"{_MODULES}.bounds.load:solve"),
        Method(
            "closed_form", "reference", "the published rule, for blocks with m <= l-1 <= d",
            f"{_MODULES}.references.patterns:solve_closed_form", (), (_AS_PRINTED,),
        ),
        Method(
            "shift", "reference", "rank x to x + p mod N, static minimal routes (congested)",
            f"{_MODULES}.references.patterns:solve_shift",
        ),
        Method(
            "pairwise", "reference", "partners exchange in every phase, static minimal routes (congested)",
            f"{_MODULES}.references.patterns:solve_pairwise",
        ),
        Method(
            "greedy", "reference", "first phase that fits, transfers in seeded random order",
            f"{_MODULES}.references.patterns:solve_greedy",
        ),
        Method(
            "cpsat", "program", "phases, destinations and routes, fewest phases (CP-SAT, then edge colouring)",
            f"{_MODULES}.programs.cpsat:solve", ("cpsat",), (_DECOMPOSE, _HORIZON),
        ),
        Method(
            "ilp", "program", "the same through Pyomo", f"{_MODULES}.programs.ilp:solve", ("highs", "gurobi", "scip"),
            (_DECOMPOSE, _HORIZON),
        ),
        Method(
            "min_congestion", "program", "smallest worst link load for a fixed number of phases",
            f"{_MODULES}.programs.min_congestion:solve", ("cpsat",), (_PHASES,),
        ),
    ),
)  # fmt: skip
