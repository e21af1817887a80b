"""The fabric family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Method, Objective, Page, by_name, rooms
from synth.options import Parameter, read_duration, read_flag, read_int

_HERE = "synth_models.fabric."
_PAGES = "synth_papers.fabric"
_CHUNKS = Parameter("chunks", read_int(1), None, "pieces that every tree's share is cut into, instead of the best")
_PIECES = Parameter("chunks", read_int(1), None, "even pieces of a block to settle exactly, instead of several numbers")
_STEPS = (
    Parameter("steps", read_int(1, 10_000), None, "steps S of SCCL's question", question=True),
    Parameter("rounds", read_int(1, 2**20), None, "rounds R of SCCL's question", question=True),
    Parameter(
        "chunks",
        read_int(1, 2**20),
        None,
        "chunks C of SCCL's question: a block's, an alltoall's for all ranks",
        question=True,
    ),
    Parameter("pareto", read_flag, False, "the front: fewest steps, then fewest rounds a chunk", question=True),
    Parameter(
        "extra", read_int(0, 64), 6, "the front's rounds beyond its steps, if counting leaves any", question=True
    ),
    Parameter("copies", read_flag, True, "allreduce: complete sums may replace what a rank holds", question=True),
)
_RESTARTS = Parameter("restarts", read_int(1), 8, "schedules to try, each with other random numbers")
_FILE = Parameter("file", str, None, "the algorithm's file", question=True)


def _read_tau(text: str) -> str:
    """``fast``, ``slow``, or the text of a duration."""
    try:
        return text if text in ("fast", "slow") else str(read_duration(text))
    except ValueError:
        raise ValueError("must be fast, slow, or a duration > 0 such as 0.00125 or 80e-9") from None


_EPOCHS = (
    Parameter(
        "tau", _read_tau, "fast", "seconds of an epoch, or a chunk's on the fastest or slowest link", question=True
    ),
    Parameter("chunks", read_int(1, 4096), 1, "chunks that every block is cut into", question=True),
    Parameter("horizon", read_int(1), None, "answer for this number of epochs alone", question=True),
    Parameter("counting", read_flag, True, "begin at the bound that counting proves (off: at one epoch)"),
    Parameter("start", read_flag, True, "begin with a plan by list scheduling"),
    Parameter("fold", read_flag, True, "fold the program by the instance's symmetries"),
    Parameter("cuts", read_flag, True, "add rows for the last departures from cuts"),
    Parameter("symmetry", read_flag, True, "order the chunks of a block, which are interchangeable"),
)


def _reference(name: str, summary: str, *parameters: Parameter, repeats: bool = True) -> Method:
    return Method(name, "reference", summary, f"{_HERE}references.{name}:solve", (), parameters, repeats)


FAMILY = Family(
    name="fabric",
    title="Any machine: collectives on heterogeneous links and switches",
    citation="the peers' territory: SCCL (PPoPP 2021), TACCL (NSDI 2023), TE-CCL (SIGCOMM 2024), TACOS (MICRO 2024), "
    "ForestColl (2024), direct-connect (NSDI 2025)",
    objective=Objective("completion time", "s"),
    **rooms("synth_models.fabric", "FabricInstance", "FabricKeys", "check_schedule",
            table="views.table:table", suited="instance:suited", series="views.series:series",
            transfers="views.transfers:transfers", papers=_PAGES,
            refutes="check.infeasibility_proof:refutes"),
    more_pages=(
        Page("peers", "The peers' published figures beside ours",
             "TE-CCL (SIGCOMM 2024), TACCL (NSDI 2023), SCCL (PPoPP 2021), ForestColl (2024), direct-connect (NSDI "
             "2025), TACOS (MICRO 2024)", "synth_papers.peers.page:reproduce"),
    ),
    published=("ring", "double_tree", "recursive_doubling", "direct", "bruck"),
    default_methods=(
        "bound", "ring", "double_tree", "hierarchical", "recursive_doubling", "direct", "bruck", "bfb", "tacos", "pull",
        "forest", "flow",
    ),
    methods=by_name(
        Method("bound", "bound", "strongest of cuts, flows, packings and latency, each with its certificate",
               _HERE + "bounds.strongest:solve"),
        Method("forest", "program", "throughput-optimal tree packing, cut into chunks and pipelined (ours)",
               _HERE + "programs.forest.method:solve", ("highspy",), (_CHUNKS,)),
        Method("flow", "program", "concurrent flow, decomposed into routes and pipelined (ours)",
               _HERE + "programs.flow.method:solve", ("highspy",), (_CHUNKS,)),
        Method("epochs", "program", "fewest epochs of a fixed length (TE-CCL's MILP and LP), then moved left in time",
               _HERE + "programs.epochs.method:solve", ("milp",), _EPOCHS),
        Method("continuous", "program", "exact for given pieces in continuous time, then neighbourhood search (ours)",
               _HERE + "programs.continuous.method:solve", ("cp",), (_PIECES,)),
        Method("steps", "program", "SCCL's question: S steps, R rounds, C chunks? and the front of both",
               _HERE + "programs.steps.method:solve", ("cp", "milp"), _STEPS),
        _reference("pull", "event-driven greedy for heterogeneous links, then large-neighbourhood search (ours)",
                   _RESTARTS, repeats=False),
        _reference("ring", "NCCL's ring: one cycle through all ranks"),
        _reference("double_tree", "NCCL's double binary tree"),
        _reference("hierarchical", "between boxes over all NICs at once, and on inside each box (ours)"),
        _reference("recursive_doubling", "recursive doubling and halving (MPI)"),
        _reference("direct", "every rank sends to every other at once"),
        _reference("bruck", "Bruck's algorithm (MPI)"),
        _reference("bfb", "breadth-first broadcast of the direct-connect paper: per step a max-flow"),
        _reference("imported", "an executor's algorithm from a file (MSCCL XML, MSCCL++ plan), on this machine", _FILE,
                   repeats=False),
        _reference("tacos", "TACOS: random greedy matching of links and chunks, made causal", _RESTARTS),
    ),
)  # fmt: skip
