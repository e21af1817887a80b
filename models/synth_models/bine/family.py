"""The bine family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_choice, read_int

_HERE = "synth_models.bine."
_PAGES = "synth_papers.bine"
_ORDER = Parameter("order", read_choice("halving", "doubling"), None, "trees: halving, butterflies: doubling first")
_WAYS = "blocks that are no neighbours: permute them before, send the pieces, or exchange them in one more round"
_BLOCKS = Parameter("blocks", read_choice("permute", "pieces", "exchange"), "permute", _WAYS)
_RESTARTS = Parameter("restarts", read_int(1), 4, "starting points of the local search")
_BETWEEN = Parameter(
    "between",
    read_choice("bine", "recursive", "ring"),
    "bine",
    "algorithm among the nodes' ranks of equal local number",
)
_ROUNDS = Parameter("rounds", read_int(1), None, "rounds of the tree, at most the problem's", question=True)


def _published(name: str, summary: str, *parameters: Parameter) -> Method:
    return Method(name, "reference", summary, f"{_HERE}references.published:{name}", (), parameters, True)


FAMILY = Family(
    name="bine",
    title="Bine trees: traffic of collectives on global links",
    citation="De Sensi et al.: Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality",
    objective=Objective("bytes on global links", "bytes"),
    **rooms(
        "synth_models.bine",
        "BineInstance",
        "BineKeys",
        "check_messages",
        suited="instance:suited",
        from_table="views.from_table:from_table",
        moves="parts.stated_moves:schedule",
        size="instance:size",
        papers=_PAGES,
        export="views.transfers:transfers",
        bound_words="bounds.global_bytes:bound_words",
    ),
    more_pages=(
        Page(
            "bine-jobs",
            "Trees and placements on the jobs of any machine",
            "A file of lines job,nodes,groups (--data FILE), beside the trees and butterflies of the Bine paper",
            _PAGES + ".jobs_page:reproduce",
        ),
    ),
    published=(
        "bine",
        "bine_torus",
        "hierarchical",
        "swing",
        "binomial_halving",
        "binomial_doubling",
        "recursive",
        "ring",
        "bruck",
        "sparbit",
        "bucket",
    ),
    seedless=(
        "binomial_halving",
        "binomial_doubling",
        "recursive",
        "ring",
        "bruck",
        "swing",
        "sparbit",
        "bucket",
        "bine",
        "bine_torus",
        "hierarchical",
        "leaders",
    ),
    default_methods=(
        *("bound", "binomial_halving", "binomial_doubling", "recursive", "ring", "bruck", "sparbit", "bucket"),
        *("bine", "bine_torus", "hierarchical", "leaders", "placement_greedy", "placement", "tree_ilp"),
    ),
    methods=by_name(
        Method(
            "bound",
            "bound",
            "trees: receive count, prices of rounds; butterflies: edge-isoperimetric count, all placements of 16 ranks",
            _HERE + "bounds.global_bytes:solve",
        ),
        _published("binomial_halving", "distance-halving binomial trees (MPICH)"),
        _published("binomial_doubling", "distance-doubling binomial trees (Open MPI)"),
        _published("recursive", "recursive halving/doubling butterflies", _ORDER),
        _published("ring", "ring; alltoall: pairwise shifts"),
        _published("bruck", "Bruck's allgather and alltoall"),
        _published("swing", "Swing: Bine's partners, blocks in pieces", _ORDER),
        _published("sparbit", "Sparbit's allgather"),
        _published("bucket", "rings along the dimensions of a torus"),
        _published("bine", "Bine trees and butterflies (the paper's)", _ORDER, _BLOCKS),
        _published("bine_torus", "Bine on a torus, one collective per direction"),
        Method(
            "hierarchical",
            "reference",
            "reduce-scatter inside nodes, Bine among equal local numbers, allgather inside (the paper's 6.2)",
            _HERE + "references.hierarchical:solve",
            parameters=(_BETWEEN,),
            repeats=True,
        ),
        Method(
            "leaders",
            "reference",
            "every group and node takes a block in once: meets the receive count, one-port rounds (ours)",
            _HERE + "references.leaders:solve",
            repeats=True,
        ),
        Method(
            "placement_greedy",
            "reference",
            "hypercube positions: aligned blocks, then swaps (ours)",
            _HERE + "references.placement_greedy:solve",
            parameters=(_RESTARTS,),
            repeats=True,
        ),
        Method(
            "placement",
            "program",
            "hypercube positions as a quadratic assignment, linearised (ours)",
            _HERE + "programs.placement.method:solve",
            ("cp", "milp"),
        ),
        Method(
            "tree_ilp",
            "program",
            "least-crossing tree as an integer flow over (group, round) (ours)",
            _HERE + "programs.tree.method:solve",
            ("milp",),
            (_ROUNDS,),
        ),
    ),
)
