"""The xtree family as data: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family, Page, rooms
from synth.method import Method, Objective, by_name
from synth.options import Parameter, read_flag, read_int

_HERE = "synth_models.xtree."
_PAGES = "synth_papers.xtree"
_PROGRAM_PARAMETERS = (
    Parameter(
        "horizon",
        read_int(1),
        None,
        "decide this number of timesteps only: a schedule, or proven infeasible",
        question=True,
        at_most=True,
    ),
    Parameter("warm_start", read_flag, True, "start from the best reference: it caps the horizons that are tried"),
    Parameter("break_chunks", read_flag, True, "symmetry breaking: order the interchangeable chunks of a node"),
    Parameter("break_rotations", read_flag, True, "symmetry breaking: rotations and reflections of the network"),
    Parameter("fold", read_flag, False, "look only for schedules that the network's symmetries map onto themselves"),
    Parameter("relaxation", read_flag, True, "first try to refute a horizon by the symmetric LP relaxation"),
    Parameter("counting", read_flag, True, "start from the counting bound; off: the program itself refutes horizons"),
)
_LIBRARY = Parameter("library", str, None, "its table; default: results/published/library.csv, here or above")
_RESTARTS = Parameter("restarts", read_int(1), 10, "schedules to try, each with other random numbers")

FAMILY = Family(
    name="xtree",
    title="XTree: link allocation for allgather, reduce-scatter, allreduce",
    citation="Cui, Qin, Cai, Huang: XTree on EquiMesh: Topology and Algorithm Co-Design for Collective Communication",
    objective=Objective("timesteps", "timesteps"),
    **rooms("synth_models.xtree", "XTreeInstance", "XTreeKeys", "check_schedule", suited="instance:suited",
            from_table="views.from_table:from_table", moves="parts.stated_moves:schedule", size="instance:size",
            papers=_PAGES, export="views.transfers:transfers",
            bound_words="check.certificates:bound_words"),
    more_pages=(
        Page("xtree-scale", "How time and memory of an allgather's synthesis grow with the nodes",
             "TACOS (MICRO 2024) reports 40,000 NPUs in 2.5 hours", _PAGES + ".scale:reproduce"),
    ),
    published=("xtree", "mirror_xtree", "mesh2d_rings", "multitree", "tacos", "tto", "tidalmesh"),
    seedless=("cycle", "mesh2d_rings", "multitree", "tto", "tidalmesh"),
    default_methods=("bound", "xtree", "mirror_xtree", "pull", "forest", "ilp"),
    methods=by_name(
        Method("bound", "bound", "strongest of receive/min-cut, diameter and volume bound",
               _HERE + "bounds.timestep_bounds:solve"),
        Method("relaxation", "bound", "LP relaxation folded by the network's symmetries refutes horizons",
               _HERE + "bounds.relaxation:solve", ("highspy",)),
        Method("xtree", "reference", "the published greedy, algorithm 2 (allgather)",
               _HERE + "references.xtree:solve", repeats=True),
        Method("mirror_xtree", "reference", "the published MirrorXTree, algorithm 3 (reductions)",
               _HERE + "references.xtree:solve_mirror", repeats=True),
        Method("pull", "reference", "every node pulls the rarest missing chunks by matching (ours)",
               _HERE + "references.pull:solve", (), (_RESTARTS,), repeats=True),
        Method("chunk_count", "reference", "the number of chunks that moves a node's data soonest, in seconds (ours)",
               _HERE + "references.chunk_count:solve", (),
               (Parameter("most", read_int(1, 1000), 32, "numbers of chunks to try, from 1 on"),
                Parameter("relaxation", read_flag, True, "also bound by the LP relaxation where counting leaves a gap"),
                _RESTARTS)),
        Method("symmetric", "reference", "one node's schedule carried over by translations (ours)",
               _HERE + "references.symmetric:solve"),
        Method("cycle", "reference", "both ways round a cycle through all nodes: optimal on even meshes (ours)",
               _HERE + "references.cycle:solve", repeats=True),
        Method("forest", "reference", "allreduce over shallow spanning trees that load all edges alike (ours)",
               _HERE + "references.forest:solve", (),
               (_RESTARTS, Parameter("passes", read_int(1), 30, "times that each is scheduled forwards or backwards")),
               repeats=True),
        Method("composed", "reference", "made of the library's schedules of other instances: images, halves (ours)",
               _HERE + "references.composed:solve", (),
               (_LIBRARY, Parameter("passes", read_int(0), 60, "times to shift it forwards and backwards"))),
        Method("mesh2d_rings", "reference", "hierarchical rings, one dimension of a mesh or torus after the other",
               _HERE + "references.mesh2d_rings:solve", repeats=True),
        Method("multitree", "reference", "MultiTree: one tree per node, trees take free links in turn",
               _HERE + "references.multitree:solve", repeats=True),
        Method("tacos", "reference", "TACOS: random greedy matching of links and chunks per timestep",
               _HERE + "references.tacos:solve", repeats=True),
        Method("tto", "reference", "TTO, reconstruction: three link-disjoint trees rooted at corners of a mesh",
               _HERE + "references.tto:solve", repeats=True),
        Method("tidalmesh", "reference", "TidalMesh, reconstruction: dimension-ordered trees, halves overlapped",
               _HERE + "references.tidalmesh:solve", repeats=True),
        Method("ilp", "program", "time-expanded link allocation, fewest timesteps (Pyomo)",
               _HERE + "programs.ilp.method:solve", ("milp",), _PROGRAM_PARAMETERS),
        Method("cpsat", "program", "the same as a CP-SAT model (one thread repeats by seed)",
               _HERE + "programs.cpsat:solve", ("cp",), _PROGRAM_PARAMETERS),
    ),
)  # fmt: skip
