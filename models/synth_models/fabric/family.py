"""The fabric family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_flag, read_int

_HERE = "synth_models.fabric."
_PAGES = "synth_papers.fabric"
_FOLDERS = ("ring", "late_rank", "class_trees")  # references of more than one file
_CHUNKS = Parameter("chunks", read_int(1), None, "pieces to cut a tree's share into; default: the best of several")
_PIECES = Parameter("chunks", read_int(1), None, "even pieces a block to solve exactly; default: several numbers")
_QUOTIENT = Parameter(
    "quotient", read_flag, None, "keep one origin's transfers and the symmetries only; default: where all are too many"
)
_SHARES = Parameter("chunks", read_int(1), None, "pieces a rank; default: the best of several", question=True)
_TRANSFERS = Parameter(
    "transfers", read_int(1), None, "transfers of a schedule at most, as far as fewer chunks help; default: many"
)
_LIBRARY = Parameter("library", str, None, "its table; default: results/published/library.csv, here or above")
_INNER = Parameter(
    "inner_rate", read_int(1, 99), None,
    "percent of their rates that links within boxes are planned with, as executors leave them; default: all",
)  # fmt: skip
_RESTARTS = Parameter("restarts", read_int(1), 8, "restarts of the search, each with other random numbers")
_FILE = Parameter(
    "file", str, None, "the file: MSCCL XML, an MSCCL++ plan, or a record of the mirrored collective", question=True
)


_IN_USE = (
    "ring", "double_tree", "recursive_doubling", "direct", "bruck", "pat", "two_level", "nvls", "sharp", "spread_out",
    "two_step",
)  # fmt: skip


def _rule(text: str) -> str:
    """A rule of ``class_trees``."""
    if text not in ("trees", "direct", "balanced", "box_copy", "gather"):
        raise ValueError("must be one of trees, direct, balanced, box_copy, gather")
    return text


def _choice(name: str, choices: tuple[str, ...], summary: str) -> Parameter:
    """A parameter that is one of several words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return Parameter(name, read, None, f"{summary}: {', '.join(choices)}; default: the best of those in use")


_TOGETHER = Parameter(
    "together", read_int(1), None, "blocks that a message takes at most; default: the best of several"
)
_TWO_LEVELS = (
    _choice("leaders", ("one", "all"), "ranks of a box that send between boxes"),
    _choice("inside", ("star", "chain", "binomial"), "from a leader to its box, and back"),
    _choice("between", ("direct", "chain", "doubling", "binomial", "two_trees", "exchange"), "between boxes"),
)


def _raced_reference(name: str, summary: str, *parameters: Parameter, repeats: bool = False) -> Method:
    """A reference that :mod:`synth_models.fabric.race` runs beside those that lend it schedules."""
    return Method(name, "reference", summary, f"{_HERE}race:{name}", (), parameters, repeats)


def _reference(name: str, summary: str, *parameters: Parameter, repeats: bool = True) -> Method:
    module = f"{name}.method" if name in _FOLDERS else name
    return Method(name, "reference", summary, f"{_HERE}references.{module}:solve", (), parameters, repeats)


FAMILY = Family(
    name="fabric",
    title="Any machine: collectives on heterogeneous links and switches",
    citation="Machines of six peers: SCCL (PPoPP 2021), TACCL (NSDI 2023), TE-CCL (SIGCOMM 2024), TACOS (MICRO 2024), "
    "ForestColl (NSDI 2026), direct-connect (NSDI 2025)",
    objective=Objective("completion time", "s"),
    **rooms("synth_models.fabric", "FabricInstance", "FabricKeys", "check_schedule",
            table="views.table:table", suited="instance:suited", series="views.series:series",
             export="views.transfers:transfers", demands="views.transfers:demands", unsuited="instance:unsuited",
             timing="scheduling.given_moves:as_exported", varied="views.varied:varied",
             corners="views.corners:corners",
             failures="views.breakable:Breakable", papers=_PAGES,
             refutes="check.certificates:refutes", from_table="views.from_table:from_table",
             at_least="bounds.chain_latency:at_least", moves="scheduling.stated_moves:schedule",
             size="instance:size", planning="race:planner", token_planning="race:token_planner",
             with_traffic="views.with_traffic:with_traffic", on_links="views.on_links:on_links",
             raced="race:raced", lifted="race:lifted"),
    more_pages=(
        Page("peers", "The peers' published figures beside ours",
             "TE-CCL (SIGCOMM 2024), TACCL (NSDI 2023), SCCL (PPoPP 2021), ForestColl (NSDI 2026), direct-connect "
             "(NSDI 2025), TACOS (MICRO 2024)", "synth_papers.peers.page:reproduce"),
        Page("clusters", "Collectives on clusters of 72 to 1,056 GPUs",
             "NCCL's rings and trees, MPI's recursive doubling and PCCL (2026) beside ours",
             _PAGES + ".clusters:reproduce"),
        Page("nvls", "What switches that copy and add are worth: NVLS and SHARP",
             "NCCL's NVLS, NVLSTree and CollNet beside ours; measurements of NCCL's users",
             _PAGES + ".nvls:reproduce"),
        Page("tuned", "What `synth tune` writes for boxes of A100 and H100, under the executor's costs",
             "MSCCL's executor; NCCL's own, and algorithms in use exported as ours are, beside it",
             _PAGES + ".tuned:reproduce", in_parts=True),
        Page("several", "Several collectives at once, beside one after the other",
             "What libraries run on one stream, beside ours", _PAGES + ".several:reproduce"),
        Page("late", "One rank joins an allreduce late", "StragglAR (2025) beside ours", _PAGES + ".late:reproduce"),
        Page("drill", "Every single failure of a machine, before it happens",
             "Beside it the bounds that our records prove", _PAGES + ".drill:reproduce"),
        Page("outside", "Simulators of others beside our replay",
             "SimGrid (S4U), ASTRA-sim (analytical backend) and LogGOPSim (LogGP) on our schedules",
             "synth_papers.outside.page:reproduce"),
    ),
    published=(*_IN_USE, "bfb", "fast", "tacos"),
    in_use=_IN_USE,
    seedless=("double_tree", "recursive_doubling", "direct", "bruck", "pat", "two_level", "bfb", "imported"),
    default_methods=(
        "bound", "ring", "double_tree", "pat", "two_level", "hierarchical", "symmetric", "in_network", "steiner",
        "nvls", "sharp",
        "recursive_doubling", "direct",
        "bruck", "bfb", "tacos", "pull", "forest", "flow", "one_after_another", "together",
    ),
    methods=by_name(
        Method("bound", "bound", "strongest of cuts, flows, packings and latency, each with its certificate",
               _HERE + "bounds.strongest:solve"),
        Method("forest", "program", "throughput-optimal tree packing, cut into chunks and pipelined (ours)",
               _HERE + "race:forest", ("highspy",), (_CHUNKS, _TRANSFERS)),
        Method("flow", "program", "concurrent flow, decomposed into routes and pipelined (ours)",
               _HERE + "race:flow", ("highspy",), (_CHUNKS,)),
        Method("steiner", "program", "Steiner trees through switches that copy and add, by column generation (ours)",
               _HERE + "programs.steiner.method:solve", ("highspy",)),
        Method("continuous", "program", "exact in continuous time for given pieces, then a neighbourhood search (ours)",
               _HERE + "race:continuous", ("cp",), (_PIECES,)),
        _raced_reference("pull", "event-driven greedy for heterogeneous links, then large-neighbourhood search (ours)",
                         _RESTARTS),
        _reference("ring", "NCCL's rings: cycles through all ranks", _TRANSFERS),
        _reference("double_tree", "NCCL's double binary tree", _TRANSFERS),
        _raced_reference("hierarchical", "between boxes over all NICs at once, and on inside each box (ours)",
                         _TRANSFERS, _INNER, repeats=True),
        _raced_reference("symmetric", "one origin's timetable moved to all others by symmetries (ours)", _QUOTIENT,
                         _TRANSFERS, repeats=True),
        _raced_reference("in_network", "sums and copies in switches (NVLS, SHARP; ours)", repeats=True),
        _reference("nvls", "NCCL's NVLS and NVLSTree: sums and copies in a box's switch, double trees between boxes"),
        _reference("sharp", "one aggregation tree of switches (SHARP, NCCL's CollNet)"),
        _reference("recursive_doubling", "recursive doubling and halving (MPI)", _TRANSFERS),
        _raced_reference("one_after_another", "several collectives in turn, each by the best method for it alone"),
        _raced_reference("together", "several collectives side by side, timed again on shared links (ours)"),
        _reference("late_rank", "one rank joins an allreduce late: StragglAR's rounds, and fewer (ours)", _SHARES),
        _reference("class_trees", "blocks with several holders, in pieces over trees at prices of links (ours)",
                   Parameter("rule", _rule, "trees", "trees, or what is done today: direct, balanced, box_copy, gather",
                             question=True), _TRANSFERS),
        _reference("direct", "every rank sends straight to every other rank", _TRANSFERS),
        _raced_reference("plan", "balanced rails, Birkhoff–von Neumann stages between boxes, in milliseconds (ours)",
                         repeats=True),
        Method("slots", "reference", "blocks straight from rank to rank, by a timetable if the machine has one (ours)",
               _HERE + "references.slots.method:solve", repeats=True),
        _reference("fast", "FAST: balanced inside boxes, then a decomposition stage by stage"),
        _reference("two_step", "over the sender's own rail, then inside the box (DeepEP)"),
        _reference("spread_out", "pairwise exchange: one partner a step (MPI)"),
        _reference("bruck", "Bruck's algorithm (MPI)", _TRANSFERS),
        _reference("pat", "NCCL's PAT: aggregated trees, the farthest step first", _TOGETHER, _TRANSFERS),
        _reference("two_level", "leaders of boxes among themselves, and inside each box (MPI, CollNet)", *_TWO_LEVELS,
                   _TRANSFERS),
        _reference("bfb", "breadth-first broadcast of the direct-connect paper: per step a max-flow"),
        _reference("imported", "the algorithm in a file (MSCCL XML, MSCCL++ plan) or of a mirror's record", _FILE,
                   repeats=False),
        _reference("composed", "made of the library's schedules of other instances: mirrors, sizes, halves (ours)",
                   _LIBRARY, Parameter("tries", read_int(1), 6, "ways to try, those with the quickest parts first"),
                   repeats=False),
        _reference("tacos", "TACOS: random greedy matching of links and chunks, made causal", _RESTARTS),
    ),
)  # fmt: skip
