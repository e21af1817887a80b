"""The floor plan: every family has the same rooms, arrows between rooms and packages point one way, there is no cycle.

Read from the files: imports inside functions count, those under TYPE_CHECKING do not. DESIGN: CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from synth.family import Family, family_names
from synth.method import load

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    ROOT / "synth",
    ROOT / "models/synth_models",
    ROOT / "models/synth_papers",
    ROOT / "models/synth_peers",
    ROOT / "tests/toy_family/toy_broadcast",
)
FAMILIES = ["toy_broadcast", *(f"synth_models.{name}" for name in family_names() if name != "faulty")]
PEERS = {"synth_peers.sccl", "synth_peers.teccl"}  # one joins the methods and the check of family fabric
METHODS = {"program": "programs", "reference": "references", "bound": "bounds"}
PROBLEM = {"instance", "solution", "parts", "problem", "scheduling"}
PIPELINE = {"plans", "routes", "race"}  # of the largest family: what methods propose and share, what alone calls them
CALLS = {
    "synth.family.get_family",
    "synth.family.load",
    "synth.method.load",
    "synth.family.families",
    "importlib.import_module",
}
# who may import whom within a family, in the end; a room may be a file while one file is enough
ARROWS = {
    "__init__": {"family"},
    "family": set[str](),
    "instance": {"parts", "problem"},
    "solution": PROBLEM - {"scheduling"},
    "making": PROBLEM,
    "parts": PROBLEM,
    "problem": set[str](),
    "routes": PROBLEM - {"scheduling"},
    "scheduling": PROBLEM | {"routes"},
    "plans": PROBLEM | {"routes", "check", "bounds"},
    "race": PROBLEM | {"routes", "check", "bounds", "plans"},
    "check": PROBLEM,
    "views": PROBLEM | {"check"},
    **dict.fromkeys(METHODS.values(), PROBLEM | {"check", "plans", "routes", *METHODS.values()}),
    "paper": PROBLEM | {"making", "check", "views", "family", *METHODS.values()},
}
# what several rooms are made of, or in the largest family two rooms; our papers' pages are a package of their own
OPTIONAL = {"parts", "problem", "scheduling", "paper", *PIPELINE}
# methods whose tuned numbers stand in one table, and their numbers that stand elsewhere: marks, tolerances, exact ones
TABLES = {
    "references.hierarchical": (
        "NOBODY OUTSIDE BY_CUT_OFF BY_ANY AROUND BESIDE HELPED WAYS LEAST_SHARE DIGITS "
        "ADDING EXCHANGING BETWEEN HANDING"
    ),
    "references.pull": (
        "UNREACHABLE FOREVER ROUNDED DE_BRUIJN BIT_OF NO_PRICE NO_DISTANCES EXCHANGE COLLECT ENTER "
        "FULL UNSEEN SEEN PASSED HOLDS"
    ),
    "references.ring": "WIDEST",
    "references.symmetric": "NOBODY",
    "references.in_network": "LEAST_SHARE",
    "programs.continuous": "MOST_TICKS MOST_UNITS UNITS CLOSE",
    "programs.steiner": "ENOUGH LEAST_SHARE SCALE FAR",
    "programs.forest": "FINEST SAME",
    "programs.flow": "SLIVER OPTIMAL PRIMAL NOTHING",
}
PARTS = {
    "instance": "instance",
    "making": "keys make",
    "solution": "pack unpack table flow_table",
    "check": "check check_bound",
    "views": "describe plot frames",
    "paper": "paper findings",
}


@cache
def files() -> dict[str, Path]:
    """The file of every module."""
    return {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for package in PACKAGES
        for file in package.rglob("*.py")
    }


@cache
def graph() -> nx.DiGraph:
    """An arrow from each module to every other of ours that it imports."""
    arrows = nx.DiGraph()
    arrows.add_nodes_from(files())
    for module, file in files().items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for name in imported(ast.parse(file.read_text()), package.split(".")):
            target = name if name in files() else name.rpartition(".")[0]
            if target in files() and target != module:
                arrows.add_edge(module, target)
    return arrows


def imported(node: ast.AST, package: list[str]) -> Iterator[str]:
    """What is imported below a node: ``a.b`` for ``import a.b`` and for ``from a import b``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else []
        yield from (".".join(filter(None, (*above, node.module, alias.name))) for alias in node.names)
    typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    for child in node.orelse if typing_only else ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # no import is part of one
            yield from imported(child, package)


def room(module: str, family: str) -> str:
    """The room of a family's module."""
    return module.removeprefix(family).lstrip(".").partition(".")[0] or "__init__"


def test_the_walk_sees_every_form_of_import() -> None:
    text = """
import a.b
from c import d
from . import e
from ..f import g
def later():
    try:
        import h
    except ImportError:
        from i import j
if TYPE_CHECKING:
    import never
else:
    import k
"""
    assert sorted(imported(ast.parse(text), ["p", "q"])) == ["a.b", "c.d", "h", "i.j", "k", "p.f.g", "p.q.e"]
    assert graph().number_of_nodes() > 200
    assert graph().number_of_edges() > 2 * graph().number_of_nodes()


def test_no_cycle() -> None:
    assert [sorted(found) for found in nx.strongly_connected_components(graph()) if len(found) > 1] == []


def test_the_toolkit_knows_no_paper_and_a_paper_no_other() -> None:
    for module in graph():
        if module.startswith("synth."):
            assert [name for name in graph()[module] if name.partition(".")[0] != "synth"] == [], module
    owner = {module: family for family in FAMILIES for module in graph() if f"{module}.".startswith(f"{family}.")}
    assert [(a, b) for a, b in graph().edges if a in owner and b in owner and owner[a] != owner[b]] == []


def test_what_a_family_is_knows_nothing_of_pages_records_or_the_command() -> None:
    assert nx.descendants(graph(), "synth.family") <= {
        "synth.clock.start_up_costs",
        "synth.clock.deadline",
        "synth.errors",
        "synth.method",
        "synth.options",
        "synth.plugins.added",
        "synth.plugins.former_fields",
        "synth.plugins.entry_points",
        "synth.clock.progress",
        "synth.text",
        "synth.text.amounts",
        "synth.text.visible",
    }


def test_no_library_needs_the_pages_of_the_papers() -> None:
    """They are not in the wheel; and each page uses the models of one family only."""
    needs = [(a, b) for a, b in graph().edges if b.startswith("synth_papers") and not a.startswith("synth_papers")]
    assert needs == []
    of = {"peers": "fabric", "outside": "fabric"}
    for module in graph():
        if module.startswith("synth_papers."):
            paper = module.split(".")[1]
            families = {other.split(".")[1] for other in graph()[module] if other.startswith("synth_models.")}
            assert families <= {of.get(paper, paper)}, module


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_the_rooms_and_nothing_else(family: str) -> None:
    held = {room(module, family) for module in graph() if f"{module}.".startswith(f"{family}.")}
    optional = OPTIONAL if family.startswith("synth_models") else OPTIONAL | {"programs"}  # a toy needs no program
    assert held | optional == ARROWS.keys() | optional
    assert held <= ARROWS.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_arrows_between_rooms_point_one_way(family: str) -> None:
    """In the end, by whatever way: the check repeats no method's mistakes, family.py imports nothing of its package."""
    wrong = [
        (module, other)
        for module in graph()
        if f"{module}.".startswith(f"{family}.")
        for other in nx.descendants(graph(), module)
        if f"{other}.".startswith(f"{family}.")
        if room(other, family) not in ARROWS[room(module, family)] | {room(module, family)}
    ]
    assert wrong == []


def test_peers_are_joined_by_entry_points_alone() -> None:
    """No family and no tool imports them, and none the other; their data imports nothing of their rooms."""
    peer = {module: ".".join(module.split(".")[:2]) for module in graph() if module.startswith("synth_peers.")}
    assert {*peer.values()} == PEERS
    assert [(a, b) for a, b in graph().edges if b in peer and peer[b] != peer.get(a)] == []
    for one in PEERS:
        assert {room(module, one) for module in peer if peer[module] == one} == {"__init__", "check", "programs"}
        assert [name for name in nx.descendants(graph(), one) if not name.startswith("synth.")] == []


def test_the_check_of_a_peer_imports_no_method() -> None:
    """Of the family only its problem and its check, in the end, by whatever way."""
    rooms = PROBLEM - {"scheduling"} | {"check"}
    for module in graph():
        if module.startswith("synth_peers.") and ".check" in module:
            reached = nx.descendants(graph(), module)
            assert {room(name, "synth_models.fabric") for name in reached if "synth_models.fabric." in name} <= rooms
            assert [name for name in reached if ".programs" in name] == [], module


@pytest.mark.parametrize("peer", sorted(PEERS))
def test_what_a_peer_names_is_there(peer: str) -> None:
    """Its method in the programs, its checks in the check."""
    method, checks = load(f"{peer}:METHOD"), load(f"{peer}:CERTIFICATES")
    assert method.target.startswith(f"{peer}.{METHODS[method.kind]}.")
    named = [target for target in (checks.argument, checks.table, checks.plan) if target is not None]
    assert named
    assert all(target.startswith(f"{peer}.check.") for target in named)
    assert all(callable(load(target)) for target in (method.target, *named))
    asked = {parameter.name for parameter in method.parameters if parameter.question}
    assert checks.name == method.name
    assert {*checks.asked} <= asked


def owner(module: str, family: str) -> str | None:
    """The method that a module is a part of: its file or its folder in the room of its kind has the method's name."""
    place, _, rest = module.removeprefix(f"{family}.").partition(".")
    name = rest.partition(".")[0]
    return name or None if place in ("programs", "references") else None


def trespasses(arrows: nx.DiGraph, family: str) -> list[tuple[str, str]]:
    """Imports of a method's code by anybody but itself."""
    owners = {module: owner(module, family) for module in arrows if f"{module}.".startswith(f"{family}.")}
    return [(a, b) for a, b in arrows.edges if owners.get(b) is not None and owners.get(a) != owners[b]]


def test_no_method_is_imported_by_another_nor_by_anybody_else() -> None:
    """In the family that has a race, which calls methods by the targets in the family's data."""
    family = "synth_models.fabric"
    assert trespasses(graph(), family) == []
    trespassing = [
        (f"{family}.references.pull.method", f"{family}.references.ring.method"),
        (f"{family}.plans.straight", f"{family}.programs.flow.model"),
        (f"{family}.race", f"{family}.references.pat"),
    ]
    fine = [
        (f"{family}.references.ring.method", f"{family}.references.ring.cycles"),
        (f"{family}.programs.flow.method", f"{family}.programs.flow.model"),
    ]
    assert sorted(trespasses(nx.DiGraph([*trespassing, *fine]), family)) == sorted(trespassing)


def test_what_lies_in_the_rooms_of_methods_is_a_methods() -> None:
    methods = load("synth_models.fabric.family:FAMILY").methods
    owners = {owner(module, "synth_models.fabric") for module in graph()} - {None}
    assert owners - methods.keys() == set()


def test_only_the_race_calls_methods() -> None:
    """Nobody imports the race, and no other module of the pipeline loads what it does not import."""
    family = "synth_models.fabric"
    assert list(graph().predecessors(f"{family}.race")) == []
    calling = []
    for module in graph():
        if owner(module, family) is not None or room(module, family) in PIPELINE | PROBLEM:
            file = ROOT.joinpath("models", *module.split("."))
            text = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
            names = set(imported(ast.parse(text), module.split(".")[:-1]))
            calling += [module] if names & CALLS or {"importlib", "synth.api", "synth.solve"} & names else []
    assert calling == [f"{family}.race"]


def numbers_at_the_top(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """The names in capitals that a module assigns something with a number in it to, each with its statement."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = [leaf.value for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant)]
            if any(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                names = [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
                yield from ((node, name) for name in names if name.isupper() and not name.startswith("_"))


@pytest.mark.parametrize("method", TABLES)
def test_tuned_numbers_stand_in_one_table_of_their_method(method: str) -> None:
    """In ``tuned.py``, each with what it counts and what it trades; other modules of the method use all of them."""
    files = sorted(ROOT.joinpath("models/synth_models/fabric", *method.split(".")).glob("*.py"))
    trees = {file.stem: ast.parse(file.read_text()) for file in files}
    [table] = [file.read_text() for file in files if file.stem == "tuned"]
    tuned = {name: table.splitlines()[node.lineno - 1] for node, name in numbers_at_the_top(trees.pop("tuned"))}
    assert [name for name, line in tuned.items() if not re.search(r"  # .+: .+", line)] == []
    used = {node.id for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert tuned.keys() - used == set()
    elsewhere = {name for tree in trees.values() for _, name in numbers_at_the_top(tree)}
    assert elsewhere == set(TABLES[method].split())


def test_numbers_at_the_top_of_a_module_are_seen() -> None:
    text = "A = 1\nB: float = 2**3\nC, D = 1, Fraction(1, 2)\nE = 'x'\nF = True\ng = 1\nH = [i for i in (0.5,)]\n"
    assert [name for _, name in numbers_at_the_top(ast.parse(text))] == list("ABCDH")


@pytest.mark.parametrize("family", FAMILIES)
def test_views_reach_no_solver(family: str) -> None:
    views = [module for module in graph() if module.startswith(f"{family}.views")]
    reached = set().union(*(nx.descendants(graph(), module) for module in views))
    assert [module for module in reached if module.startswith("synth.solvers")] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_target_lies_in_its_room(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method in the folder of its kind, a part in the room of its name; what is named is there. What is raced has its
    own function there, which the race calls."""
    monkeypatch.syspath_prepend(ROOT / "tests/toy_family")
    data: Family = load(f"{family}.family:FAMILY")
    parts = vars(data) | data.capabilities
    named = [(part, place, parts.get(part)) for place, names in PARTS.items() for part in names.split()]
    named += [(method.name, METHODS[method.kind], method.target) for method in data.methods.values()]
    raced = [one for one in named if one[2] == f"{family}.race:{one[0]}"]
    own = [(name, place, f"{family}.{place}.{name}") for name, place, _ in raced]
    own = [
        (name, place, f"{module}{'.method' * (f'{module}.method' in graph())}:propose") for name, place, module in own
    ]
    named = [one for one in named if one not in raced] + own
    there = [(part, place, target) for part, place, target in named if target is not None]
    either = {"table": {"solution", "views"}}  # one that needs a replay is a view
    pages = f"synth_papers.{family.rpartition('.')[2]}"  # where ours are: the page is :mod:`page`, as in the plan
    strange = [
        target
        for part, place, target in there
        if room(target.partition(":")[0], family) not in either.get(part, {place})
        and not (place == "paper" and target.startswith(f"{pages}."))
    ]
    assert strange == []
    assert all(callable(load(target)) or isinstance(load(target), tuple) for _, _, target in there)  # findings: data


SHARED_TYPES = {
    "Move": {"synth_models.fabric.scheduling.moves"},
    "Route": {"synth_models.fabric.routes.search"},
    "Plan": {"synth_models.fabric.plans.demands.balanced_plan"},
    "Candidate": set[str](),  # the best so far is an Incumbent
    "Found": set[str](),
}


def test_a_move_a_route_and_a_plan_have_one_type_each() -> None:
    """A class of one of these names, in the plural or private as well, is the shared one."""
    defined: dict[str, set[str]] = {name: set() for name in SHARED_TYPES}
    for module, file in files().items():
        if module.startswith("synth_models.fabric."):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    defined.get(node.name.lstrip("_").removesuffix("s"), set()).add(module)
    assert defined == SHARED_TYPES


def test_columns_of_transfers_are_filled_in_one_place() -> None:
    """Everybody else says routes and what is waited for (``Transfers.of_rows`` and what calls it)."""
    found = set()
    for module, file in files().items():
        if module.startswith(("synth_models.fabric.", "synth_peers.")):
            tree = ast.parse(file.read_text())
            names = {
                alias.asname or alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module == "synth_models.fabric.scheduling.list_scheduling"
                for alias in node.names
                if alias.name == "Transfers"
            }
            found |= {
                module
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
            }
    assert not found
