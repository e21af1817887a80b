"""The optree family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_choice, read_flag, read_int

_HERE = "synth_models.optree."
_PAGES = "synth_papers.optree"


def _read_radices(text: str) -> tuple[int, ...]:
    try:
        radices = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError("must be whole numbers with commas, such as 4,4") from None
    if any(radix < 2 for radix in radices):
        raise ValueError("every radix must be >= 2")
    return radices


_HORIZON = Parameter(
    "horizon",
    read_int(1),
    None,
    "decide this number of steps only: a schedule, or proven infeasible",
    True,
    at_most=True,
)
_SHAPE = Parameter(
    "shape", read_choice("ring", "segment"), "ring", "route all round the ring, or as on a line segment", question=True
)
_CIRCUITS = Parameter("circuits", read_flag, False, "the circuits themselves, which the check replays")

FAMILY = Family(
    name="optree",
    title="OpTree: stages, wavelengths and time-expanded schedules of an allgather on an optical ring, torus or mesh",
    citation="Dai, Chen, Huang, Zhang: Efficient Algorithm for All-gather Operation in Optical Interconnect Systems",
    objective=Objective("steps", "steps"),
    **rooms("synth_models.optree", "OpTreeInstance", "OpTreeKeys", "check_solution",
            papers=_PAGES, export="views.transfers:transfers",
            from_table="views.from_table:from_table", size="instance:size"),
    published=("optree", "formula", "ring", "neighbor_exchange", "wrht", "one_stage", "first_fit", "longest_first"),
    seedless=("formula", "ring", "neighbor_exchange", "wrht", "one_stage", "first_fit", "longest_first", "optree"),
    default_methods=("bound", "optree", "relay", "time_expanded"),
    methods=by_name(
        Method("bound", "bound", "receive bound and reach bound (prices on the steps, an LP's dual)",
               _HERE + "bounds.steps:solve"),
        Method("formula", "reference", "OpTree's published step count (Theorem 1) at its best depth",
               _HERE + "references.published_counts:solve_formula", (),
               (Parameter("depth", read_int(1, 64), None, "depth k instead of the best one", question=True),),
               repeats=True),
        Method("ring", "reference", "published step count of the ring algorithm",
               _HERE + "references.published_counts:solve_ring", (), (_CIRCUITS,), repeats=True),
        Method("neighbor_exchange", "reference", "published step count of neighbor exchange (even N)",
               _HERE + "references.published_counts:solve_neighbor_exchange", (), (_CIRCUITS,), repeats=True),
        Method("wrht", "reference", "published step count of WRHT extended to allgather",
               _HERE + "references.published_counts:solve_wrht", (),
               (Parameter("variant", read_int(1, 2), 1, "which of the two published last terms; with circuits "
                         "1: an exchange at the top, 2: all to one node"), _CIRCUITS), repeats=True),
        Method("one_stage", "reference", "published step count of one all-to-all over the whole ring",
               _HERE + "references.published_counts:solve_one_stage", repeats=True),
        Method("first_fit", "reference", "one-stage schedule, circuits coloured first-fit",
               _HERE + "references.first_fit:solve_first_fit", (), (_SHAPE,), repeats=True),
        Method("longest_first", "reference", "one-stage schedule, circuits coloured first-fit, longest first",
               _HERE + "references.first_fit:solve_longest_first", (), (_SHAPE,), repeats=True),
        Method("rwa", "program", "fewest wavelengths of one stage (CP-SAT, one thread repeats by seed; or Pyomo)",
               _HERE + "programs.rwa.method:solve", ("cp", "milp"),
               (_SHAPE, Parameter("hint", read_flag, False, "start from the closed-form colouring"))),
        Method("stages", "program", "radices of OpTree's stages by exact dynamic program or integer program",
               _HERE + "programs.stages:solve", ("milp",),
               (Parameter("by", read_choice("program", "dynamic"), "dynamic", "which of the two"),)),
        Method("optree", "reference", "OpTree's explicit circuits for the best (or given) radices",
               _HERE + "references.optree:solve", (),
               (Parameter("radices", _read_radices, None, "radices of stages 1..k, e.g. 4,4", question=True),
                Parameter("sharing", read_flag, True, "on a grid: a node's items share wavelengths (off: one by one)",
                          question=True)), repeats=True),
        Method("composed", "reference", "the library's schedules for fewer wavelengths, as they are (ours)",
               _HERE + "references.composed:solve", (),
               (Parameter("library", str, None, "its table; default: results/published/library.csv, here or above"),)),
        Method("relay", "reference", "leaping frontiers with the gaps filled behind them (ours)",
               _HERE + "references.relay:solve"),
        Method("one_path", "program", "all items on one path, rotated, or on two (CP-SAT, one thread repeats by seed)",
               _HERE + "programs.one_path.method:solve", ("cp",),
               (_HORIZON,
                Parameter("warm_start", read_flag, True, "start from relay: it caps the horizons that are tried"))),
        Method("time_expanded", "program", "fewest steps of any schedule (CP-SAT, one thread repeats by seed)",
               _HERE + "programs.time_expanded.method:solve", ("cp",),
               (_HORIZON,
                Parameter("warm_start", read_flag, True, "start from relay: it caps the horizons that are tried"))),
    ),
)  # fmt: skip
