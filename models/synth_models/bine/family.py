"""The bine family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Method, Objective, by_name
from synth.options import Parameter, read_choice, read_int

_HERE = "synth_models.bine."
_ORDER = Parameter("order", read_choice("halving", "doubling"), None, "trees: halving, butterflies: doubling first")
_BLOCKS = Parameter(
    "blocks", read_choice("permute", "pieces", "exchange"), "permute",
    "blocks that are no neighbours: permute them before, send the pieces, or exchange them in one more round",
)  # fmt: skip

FAMILY = Family(
    name="bine",
    title="Bine trees: traffic of collectives on global links",
    citation="De Sensi et al.: Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality",
    objective=Objective("bytes on global links", "bytes"),
    instance=_HERE + "instance:BineInstance",
    keys=_HERE + "making:BineKeys",
    make=_HERE + "making:make",
    check=_HERE + "check.replay:check_plan",
    check_bound=_HERE + "check.certificates:check_bound",
    pack=_HERE + "solution:pack",
    unpack=_HERE + "solution:unpack",
    table=_HERE + "solution:table",
    describe=_HERE + "views.describe:describe",
    plot=_HERE + "views.describe:plot",
    frames=_HERE + "views.frames:frames",
    paper=_HERE + "paper.page:reproduce",
    suited=_HERE + "instance:suited",
    published=("bine",),
    default_methods=(
        "bound", "binomial_halving", "binomial_doubling", "recursive", "ring", "bruck", "sparbit", "bucket",
        "bine", "bine_torus", "placement_greedy", "placement", "tree_ilp",
    ),
    methods=by_name(
        Method("bound", "bound", "trees: receive count; butterflies: edge-isoperimetric count",
               _HERE + "bounds.counting:solve"),
        Method("binomial_halving", "reference", "distance-halving binomial trees (MPICH)",
               _HERE + "references.published:binomial_halving"),
        Method("binomial_doubling", "reference", "distance-doubling binomial trees (Open MPI)",
               _HERE + "references.published:binomial_doubling"),
        Method("recursive", "reference", "recursive halving/doubling butterflies",
               _HERE + "references.published:recursive", (), (_ORDER,)),
        Method("ring", "reference", "ring; alltoall: pairwise shifts", _HERE + "references.published:ring"),
        Method("bruck", "reference", "Bruck's allgather and alltoall", _HERE + "references.published:bruck"),
        Method("swing", "reference", "Swing: Bine's partners, blocks in pieces",
               _HERE + "references.published:swing", (), (_ORDER,)),
        Method("sparbit", "reference", "Sparbit's allgather", _HERE + "references.published:sparbit"),
        Method("bucket", "reference", "rings along the dimensions of a torus", _HERE + "references.published:bucket"),
        Method("bine", "reference", "Bine trees and butterflies (the paper's)",
               _HERE + "references.published:bine", (), (_ORDER, _BLOCKS)),
        Method("bine_torus", "reference", "Bine on a torus, one collective per direction",
               _HERE + "references.published:bine_torus"),
        Method("placement_greedy", "reference", "hypercube positions: aligned blocks, then swaps (ours)",
               _HERE + "references.placement_greedy:solve", (),
               (Parameter("restarts", read_int(1), 4, "starting points of the local search"),)),
        Method("placement", "program", "hypercube positions as a quadratic assignment, linearised (ours)",
               _HERE + "programs.placement.method:solve", ("cpsat", "highs", "scip", "gurobi")),
        Method("tree_ilp", "program", "least-crossing tree as an integer flow over (group, round) (ours)",
               _HERE + "programs.tree.method:solve", ("highs", "scip", "gurobi"),
               (Parameter("rounds", read_int(1), None, "rounds of the tree, at most the problem's"),)),
    ),
)  # fmt: skip
