"""The topology family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_int

_HERE = "synth_models.topology."
_MOVES = Parameter("moves", read_int(1), 100_000, "moves of a start of the local search, at most")
_STARTS = Parameter("starts", read_int(1), 4, "starting points of the local search")


def _published(name: str, summary: str) -> Method:
    return Method(name, "reference", summary, f"{_HERE}references.published:{name}", repeats=True)


FAMILY = Family(
    name="topology",
    title="Topology: which circuits serve an all-to-all best",
    citation="Green, Thottethodi: Throughput-Optimized Networks at Scale (TONS)",
    objective=Objective("load or hops", ""),
    **rooms(
        "synth_models.topology",
        "TopologyInstance",
        "TopologyKeys",
        "check_topology",
        suited="instance:suited",
        size="instance:size",
        flow_table="solution:flow_table",
        network="views.network:network",
        from_table="views.from_table:from_table",
    ),
    more_pages=(
        Page(
            "topology",
            "Topologies of circuits, published and ours",
            "TONS (2605.27963), direct-connect (NSDI 2025), Graph Golf (2016)",
            "synth_papers.topology.page:reproduce",
        ),
    ),
    published=("torus", "twisted", "circulant", "de_bruijn", "kautz", "random_regular"),
    default_methods=(
        *("bound", "torus", "twisted", "circulant", "de_bruijn", "kautz", "random_regular", "search", "milp"),
    ),
    methods=by_name(
        Method("bound", "bound", "levels of nodes within so many hops, cuts of slabs", _HERE + "bounds.anywhere:solve"),
        _published("torus", "cubes as a block, its lines closed to rings"),
        _published("twisted", "the torus whose rings are closed half of a longer side further"),
        _published("circulant", "u to u ± s; of degree 4 of the least diameter"),
        _published("de_bruijn", "generalised de Bruijn graph, one way"),
        _published("kautz", "generalised Kautz graph, one way"),
        _published("random_regular", "a random regular graph (Jellyfish)"),
        Method(
            "search",
            "reference",
            "local search over lifts by lengths and the cut of a cube, then the routing (ours)",
            _HERE + "references.search:solve",
            parameters=(_MOVES, _STARTS),
        ),
        Method(
            "milp",
            "program",
            "circuits and the concurrent flow in one program (switches, at most 16 nodes; ours)",
            _HERE + "programs.milp:solve",
            ("milp",),
        ),
    ),
)
