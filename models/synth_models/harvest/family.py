"""The harvest family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_choice, read_flag, read_int

_HERE = "synth_models.harvest."
_PAGES = "synth_papers.harvest"
_EXACT = (
    Parameter("symmetry", read_flag, True, "keep one of the topologies that relabelled GPUs turn into each other"),
    Parameter("strengthening", read_flag, True, "rows on reachability and distances; one port as a linear program"),
    Parameter(
        "cone", read_choice("auto", "cuts", "cone"), "auto", "T * theta >= m by tangents or as a cone (auto: SCIP)"
    ),
)


def _reference(name: str, target: str, summary: str, *parameters: Parameter) -> Method:
    return Method(name, "reference", summary, f"{_HERE}references.{target}", (), parameters, True)


FAMILY = Family(
    name="harvest",
    title="Harvest: reconfiguration schedules for a photonic fabric",
    citation="Harvest: adaptive photonic switching schedules for collective communication in scale-up domains",
    objective=Objective("completion time", "s"),
    **rooms(
        "synth_models.harvest",
        "HarvestInstance",
        "HarvestKeys",
        "check_schedule",
        suited="references.suited:suited",
        flow_table="solution:flow_table",
        from_table="views.from_table:from_table",
        size="instance:size",
        papers=_PAGES,
        export="views.transfers:transfers",
        demands="views.transfers:demands",
    ),
    more_pages=(
        Page(
            "harvest-delays",
            "Harvest with a delay per circuit, and with overlap",
            "Harvest, sections 3.1 and 6 (last paragraph), which name both and evaluate neither",
            _PAGES + ".delays_page:reproduce",
        ),
        Page(
            "harvest-topologies",
            "Harvest with topologies of its own, and on 256 and 1,024 GPUs",
            "Harvest, section 4.4 (candidate topologies) and the eight collectives of its figures",
            _PAGES + ".topologies_page:reproduce",
        ),
    ),
    published=("dp_k", "recursive_doubling_closed_form", "bvn", "static_ring", "static_torus", "static_kautz"),
    seedless=("static_ring", "static_torus", "static_kautz", "bvn", "greedy", "dp_k", "recursive_doubling_closed_form"),
    default_methods=(
        "bound",
        "static_ring",
        "static_torus",
        "static_kautz",
        "bvn",
        "greedy",
        "recursive_doubling_closed_form",
        "dp_k",
        "candidates",
    ),
    methods=by_name(
        Method(
            "bound",
            "bound",
            "least time over all topology sequences, by relaxations of intervals (ours)",
            _HERE + "bounds.sequences:solve",
            (),
            (
                Parameter("rates", read_choice("on", "off"), "on", "joint limits on rates"),
                Parameter(
                    "cases",
                    read_choice("auto", "on", "off"),
                    "auto",
                    "divide intervals by the hops of their patterns: first (on), last (auto), never (off)",
                ),
            ),
        ),
        _reference("static_ring", "baselines:static_ring", "the 1-D ring throughout"),
        _reference("static_torus", "baselines:static_torus", "the 2-D or 3-D torus throughout"),
        _reference("static_kautz", "baselines:static_kautz", "the generalised Kautz network throughout"),
        _reference("bvn", "baselines:bvn", "reconfigure before every step whose pattern differs"),
        _reference("greedy", "greedy:solve", "reconfigure when the step alone gains more than the delay (ours)"),
        _reference(
            "dp_k",
            "algorithm_1:solve",
            "Algorithm 1: least time for every number of reconfigurations (the paper's)",
            Parameter(
                "reconfigurations", read_int(0), None, "intervals less one, instead of the best k", question=True
            ),
        ),
        _reference(
            "recursive_doubling_closed_form",
            "recursive_doubling:solve",
            "recursive doubling on one port in O(log^2 n) (the paper's section 5)",
        ),
        Method(
            "composed",
            "reference",
            "the library's schedules for other delays, sizes or overlaps, as they are (ours)",
            _HERE + "references.composed:solve",
            (),
            (Parameter("library", str, None, "its table; default: results/published/library.csv, here or above"),),
        ),
        Method(
            "candidates",
            "program",
            "concurrent flows on candidate topologies, then a shortest path",
            _HERE + "programs.candidates:solve",
            ("highspy",),
        ),
        Method(
            "column_generation",
            "program",
            "candidates, and topologies made for the intervals where they pay (ours)",
            _HERE + "programs.column_generation.method:solve",
            ("highspy",),
        ),
        Method(
            "misocp",
            "program",
            "appendix A over all topologies with the outer program: proven optimal (exact)",
            _HERE + "programs.misocp.method:solve",
            ("milp",),
            _EXACT,
        ),
    ),
)
