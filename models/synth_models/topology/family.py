"""The topology family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_int

_HERE = "synth_models.topology."
_MOVES = Parameter("moves", read_int(1), 100_000, "moves of a start of the local search, at most")
_STARTS = Parameter("starts", read_int(1), 4, "starting points of the local search")

_PUBLISHED = (
    *("torus", "twisted", "circulant", "de_bruijn", "kautz", "random_regular"),
    *("complete_bipartite", "line_graph", "cartesian_power", "degree_expansion"),
)


def _published(name: str, summary: str, module: str = "published") -> Method:
    return Method(name, "reference", summary, f"{_HERE}references.{module}:{name}", repeats=True)


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
    published=_PUBLISHED,
    default_methods=("bound", *_PUBLISHED, "search", "milp"),
    methods=by_name(
        Method("bound", "bound", "levels of nodes within so many hops, cuts of slabs", _HERE + "bounds.anywhere:solve"),
        _published("torus", "cubes as a block, its lines closed to rings"),
        _published("twisted", "the torus whose rings are closed half of a longer side further"),
        _published("circulant", "u to u ± s; of degree 4 of the least diameter"),
        _published("de_bruijn", "generalised de Bruijn graph, one way"),
        _published("kautz", "generalised Kautz graph, one way"),
        _published("random_regular", "a random regular graph (Jellyfish)"),
        _published("complete_bipartite", "two halves, all of one joined to all of the other", "constructions"),
        _published("line_graph", "line graphs of small graphs, one way (direct-connect)", "constructions"),
        _published("cartesian_power", "powers of small graphs: Hamming, tori (direct-connect)", "constructions"),
        _published("degree_expansion", "copies of the nodes of small graphs (direct-connect)", "constructions"),
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
