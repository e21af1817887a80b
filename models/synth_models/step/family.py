"""The step family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_int

_HERE = "synth_models.step."
_MOVES = Parameter("moves", read_int(0), 0, "orders tried, at most; 0: what takes about a second")

FAMILY = Family(
    name="step",
    title="Step: computations and collectives of a training step in order",
    citation="Zero bubble pipelines (ICLR 2024); DELTA (2026)",
    objective=Objective("end of the step", "s"),
    **rooms("synth_models.step", "StepInstance", "StepKeys", "check_step", suited="instance:suited",
            size="instance:size", what_if="parts.changes:what_if", traces="views.chakra:traces",
            from_table="views.from_table:from_table"),
    more_pages=(
        Page("step", "Whole training steps, and what better communication could buy",
             "AICB (SimAI), DeepSeek's profile (2025), symbolic_tensor_graph", "synth_papers.step.page:reproduce"),
    ),
    published=("issued", "longest_tail"),
    in_use=("issued",),
    seedless=("issued", "longest_tail"),
    default_methods=("bound", "issued", "longest_tail", "search", "order"),
    methods=by_name(
        Method("bound", "bound", "longest path; work of streams and ports", _HERE + "bounds.strongest:solve"),
        Method("issued", "reference", "in the order of issue, all collectives of a rank on one stream, by rings",
               _HERE + "references.issued:solve", repeats=True),
        Method("longest_tail", "reference", "list scheduling: the longest path behind it first",
               _HERE + "references.longest_tail:solve", repeats=True),
        Method("search", "reference", "order and overlap by list scheduling with shaken priorities (ours)",
               _HERE + "references.search:solve", parameters=(_MOVES,), repeats=True),
        Method("order", "program", "order and overlap of small steps, exactly", _HERE + "programs.order:solve",
               ("cp",)),
    ),
)  # fmt: skip
