"""The mlfm family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, rooms
from synth.method import Method, Need, Objective, by_name
from synth.options import Parameter, read_flag, read_int

_HERE = "synth_models.mlfm."
_PAGES = "synth_papers.mlfm"
_SPLIT = "count flows per route first, then colour them (exact for one-spine routes); off: one model"
_DECOMPOSE = Parameter("decompose", read_flag, True, _SPLIT)
_HORIZON = Parameter(
    "horizon", read_int(1), None, "decide this number of phases only: phases, or proven infeasible", True, at_most=True
)
_AS_PRINTED = Parameter("as_printed", read_flag, False, "apply the printed rule to any block, the check judges")
_PHASES = Parameter(
    "phases", read_int(1), None, "number of phases; the number of servers N when not given", question=True
)


def _reference(name: str, summary: str, target: str, *parameters: Parameter) -> Method:
    return Method(name, "reference", summary, _HERE + "references." + target, (), parameters, True)


def _program(name: str, summary: str, needs: tuple[Need, ...], *parameters: Parameter) -> Method:
    return Method(name, "program", summary, f"{_HERE}programs.{name}:solve", needs, parameters)


FAMILY = Family(
    name="mlfm",
    title="MLFM: congestion-free all-to-all on part of a multi-layer full mesh",
    citation="Congestion-free all-to-all communication using part of the servers on the Multi-layer full mesh topology",
    objective=Objective("phases", "phases"),
    **rooms(
        "synth_models.mlfm",
        "MLFMInstance",
        "MLFMKeys",
        "check_phases",
        suited="instance:suited",
        from_table="views.from_table:from_table",
        size="instance:size",
        papers=_PAGES,
        demands="views.transfers:demands",
        refutes="check.certificates:refutes",
        bound_words="bounds.load:bound_words",
    ),
    published=("closed_form", "shift", "pairwise"),
    seedless=("closed_form", "shift", "pairwise"),
    default_methods=("bound", "closed_form", "shift", "greedy", "repair", "columns", "spines", "cpsat"),
    methods=by_name(
        Method(
            "bound",
            "bound",
            "strongest of N, forced links, leaf degree and fractional routing",
            _HERE + "bounds.machine:solve",
        ),
        _reference(
            "closed_form", "the published rule, for blocks with m <= l-1 <= d", "closed_form:solve", _AS_PRINTED
        ),
        _reference("shift", "rank x to x + p mod N, static minimal routes (congested)", "patterns:shift"),
        _reference(
            "pairwise", "partners exchange in every phase, static minimal routes (congested)", "patterns:pairwise"
        ),
        _reference(
            "repair", "the rule, with the transfers that failures broke placed again (whole machines)", "repair:solve"
        ),
        _reference(
            "spines",
            "flows counted per link, every spine coloured alone (whole machines, cables failed)",
            "spines:solve",
        ),
        _reference("greedy", "first phase that fits, transfers in seeded random order", "greedy:solve"),
        _program(
            "cpsat",
            "phases, destinations and routes, fewest phases (CP-SAT, then edge colouring)",
            ("cp",),
            _DECOMPOSE,
            _HORIZON,
        ),
        _program("ilp", "the same through Pyomo", ("milp",), _DECOMPOSE, _HORIZON),
        Method(
            "columns",
            "program",
            "routes between columns, all layers alike; only spines or cables failed (CP-SAT, HiGHS; whole machines)",
            _HERE + "programs.columns.method:solve",
            ("cp",),
        ),
        _program("min_congestion", "smallest worst link load for a fixed number of phases", ("cp",), _PHASES),
    ),
)
