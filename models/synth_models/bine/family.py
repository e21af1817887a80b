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
    check=_HERE + "check:check_plan",
    check_bound=_HERE + "check_bound:check_bound",
    pack=_HERE + "plan:pack",
    unpack=_HERE + "plan:unpack",
    table=_HERE + "plan:table",
    describe=_HERE + "views:describe",
    plot=_HERE + "views:plot",
    frames=_HERE + "animation:frames",
    paper=_HERE + "reproduce:reproduce",
    suited=_HERE + "instance:suited",
    default_methods=(
        "bound", "binomial_halving", "binomial_doubling", "recursive", "ring", "bruck", "sparbit", "bucket",
        "bine", "bine_torus", "placement_greedy", "placement", "tree_ilp",
    ),
    methods=by_name(
        Method("bound", "bound", "trees: receive count; butterflies: edge-isoperimetric count",
               _HERE + "bound:solve"),
        Method("binomial_halving", "reference", "distance-halving binomial trees (MPICH)",
               _HERE + "references:binomial_halving"),
        Method("binomial_doubling", "reference", "distance-doubling binomial trees (Open MPI)",
               _HERE + "references:binomial_doubling"),
        Method("recursive", "reference", "recursive halving/doubling butterflies",
               _HERE + "references:recursive", (), (_ORDER,)),
        Method("ring", "reference", "ring; alltoall: pairwise shifts", _HERE + "references:ring"),
        Method("bruck", "reference", "Bruck's allgather and alltoall", _HERE + "references:bruck"),
        Method("swing", "reference", "Swing: Bine's partners, blocks in pieces",
               _HERE + "references:swing", (), (_ORDER,)),
        Method("sparbit", "reference", "Sparbit's allgather", _HERE + "references:sparbit"),
        Method("bucket", "reference", "rings along the dimensions of a torus", _HERE + "references:bucket"),
        Method("bine", "reference", "Bine trees and butterflies (the paper's)",
               _HERE + "references:bine", (), (_ORDER, _BLOCKS)),
        Method("bine_torus", "reference", "Bine on a torus, one collective per direction",
               _HERE + "references:bine_torus"),
        Method("placement_greedy", "reference", "hypercube positions: aligned blocks, then swaps (ours)",
               _HERE + "greedy:solve", (),
               (Parameter("restarts", read_int(1), 4, "starting points of the local search"),)),
        Method("placement", "program", "hypercube positions as a quadratic assignment, linearised (ours)",
               _HERE + "placement:solve", ("cpsat", "highs", "scip", "gurobi")),
        Method("tree_ilp", "program", "least-crossing tree as an integer flow over (group, round) (ours)",
               _HERE + "tree_ilp:solve", ("highs", "scip", "gurobi"),
               (Parameter("rounds", read_int(1), None, "rounds of the tree, at most the problem's"),)),
    ),
)  # fmt: skip
