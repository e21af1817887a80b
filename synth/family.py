"""What a family is: one problem class, of one paper, as plain data.

A family names its parts by targets, ``"module:name"``, which are imported when they are needed, as its methods' are.
It runs nothing and knows nothing of pages, records or the command. Families are found through the entry-point group
``synth.families``, further methods of theirs through ``synth.methods``, so a distribution of its own can add both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from synth.errors import Fault, InputError, one_of
from synth.options import Parameter, RunOptions
from synth.plugins import entry_points

if TYPE_CHECKING:
    from synth.clock.deadline import Held
    from synth.instance import Instance

Kind = Literal["program", "reference", "bound", "submitted"]
"""A method's; ``submitted`` is what somebody handed in, of no method of ours."""
Termination = Literal[
    "finished", "optimal", "infeasible", "time_limit", "size_limit", "unsupported", "error", "out_of_memory", "killed"
]
Need = Literal["milp", "miqcp", "cp", "highspy"]
"""What a method needs of its solver, and a solver can take: Pyomo models with linear rows (``milp``) or also quadratic
ones (``miqcp``), OR-Tools' ``CpModel`` (``cp``), or HiGHS's own interface, through which a program grows between two
solves or gives its dual prices (``highspy``)."""
SUBMITTED = "submitted"  # instead of a method's name
Target = str
"""``"module:name"``: where a part of a family is."""


def load(target: Target) -> Any:
    """What the target names, its module imported if it is not yet."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Objective:
    """What is minimised, and in which unit."""

    name: str
    unit: str


@dataclass
class Outcome:
    """What a method hands back. Why it stopped, the point it holds and the bound it proved are separate facts.

    ``bound`` is a proven lower bound or None; ``bound_proof`` says in words by what. ``certificate`` is data with
    which the family can verify the bound again (a cut, say), beside a solution or alone. A bound without certificate is
    the word of the run's solver; where no solver ran, it counts as proven by nobody. ``made_by``: the method that made
    the solution, where that is not the one that ran, and behind it those that made its parts.
    """

    termination: Termination
    solution: Any = None
    bound: float | None = None
    bound_proof: str | None = None
    certificate: Mapping[str, Any] | None = None
    message: str | None = None
    build_s: float = 0.0
    solve_s: float = 0.0
    made_by: tuple[str, ...] | None = None

    def take_over(self, held: Held) -> None:
        """Fill in what a run held when it had to stop, where it hands back none itself."""
        if self.termination not in ("time_limit", "out_of_memory"):
            return
        if self.solution is None and held.solution is not None:
            self.solution, self.made_by = held.solution(), held.made_by
            self.message = "; ".join(filter(None, (held.words, self.message)))
        if self.bound is None and held.bound is not None:
            self.bound, self.bound_proof, self.certificate = held.bound, held.bound_proof, held.certificate


@dataclass
class Verdict:
    """What the check found: the objective recomputed from the solution, facts about it, and its faults.

    ``unverified`` is what a stored record states and nobody can compute again, such as a solver's bound; families leave
    it empty.
    """

    value: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclass(frozen=True)
class Method:
    """One way to solve a family's instances.

    The function behind ``target`` takes ``(instance, RunOptions)`` and returns an :class:`Outcome`. ``needs`` are the
    kinds of model that it can hand to a solver, the best first: it runs with every solver that takes one of them
    (:func:`synth.solvers.catalogue.solvers_for`). It ``repeats`` if instance, options and seed alone decide the
    solution, as long as the time limit does not end it: then ``synth check`` can run it again
    (:mod:`synth.records.repetition`).
    """

    name: str
    kind: Kind
    summary: str
    target: Target
    needs: tuple[Need, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    repeats: bool = False
    origin: str | None = None  # who else than this distribution it comes from: filled in where it is found
    folder: Path | None = None  # of a method in a file (synth.plugins.method_file): where the modules of its target are

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no method can be: others write methods too."""
        if self.kind not in get_args(Kind) or (self.kind == "submitted") != (self.name == SUBMITTED):
            kinds = ", ".join(kind for kind in get_args(Kind) if kind != "submitted")
            raise ValueError(f"method {self.name}: kind = {self.kind!r}: must be one of {kinds}")
        if unknown := set(self.needs) - set(get_args(Need)):
            raise ValueError(
                f"method {self.name}: needs {unknown.pop()!r}: must be some of {', '.join(get_args(Need))}"
            )
        if not re.fullmatch(r"[A-Za-z0-9_.]+(:[A-Za-z0-9_]+)?", self.name):  # records' files are named for it
            raise ValueError(f"method {self.name!r}: a name has letters, digits and _ only")

    def load(self) -> Callable[[Any, RunOptions], Outcome]:
        """The function behind the method."""
        function: Callable[[Any, RunOptions], Outcome]
        function = load(self.target) if self.folder is None else entry_points.load_in(self.folder, self.target)
        return function


@dataclass(frozen=True)
class Page:
    """A page of ``synth reproduce`` by its name; ``target`` takes a
    :class:`synth.reproduction.collect.Reproduction` and fills it; ``in_parts``: it knows ``--only``, ``--again`` and
    ``--references``."""

    name: str
    title: str
    citation: str
    target: Target
    in_parts: bool = False


@dataclass(frozen=True)
class Family:
    """One problem class. Every part is a target; the signatures are those of the comments.

    ``check`` replays a solution from the instance alone; ``check_bound`` verifies a bound from its certificate and
    returns the faults found; ``pack`` gives a solution as plain values and flat numpy arrays, ``unpack`` is its inverse
    and raises ``ValueError`` on data that is no solution; ``table`` gives it as one flat table with stable columns.
    """

    name: str
    title: str
    citation: str
    objective: Objective
    instance: Target  # type[synth.instance.Instance]
    keys: Target  # type[synth.making.Keys]: what `synth make` takes
    make: Target  # (keys) -> Instance; raises InputError
    check: Target  # (instance, solution) -> Verdict
    check_bound: Target  # (instance, bound, certificate) -> list[str]
    pack: Target  # (solution) -> dict[str, Any]
    unpack: Target  # (instance, packed) -> solution
    table: Target  # (instance, solution) -> pandas.DataFrame
    describe: Target  # (instance, solution) -> str
    plot: Target  # (instance, solution, title) -> matplotlib Figure
    methods: Mapping[str, Method]
    default_methods: tuple[str, ...]  # run when the user names none
    seedless: tuple[str, ...] = ()  # references that no seed changes: a study over seeds runs them once, as bounds
    published: tuple[str, ...] = ()  # methods that are the paper's own algorithm: what the others are measured against
    suited: Target | None = None  # (instance, method name) -> bool: whether a default method fits the instance
    flow_table: Target | None = None  # (instance, solution) -> pandas.DataFrame: `show --csv --flows`
    size: Target | None = None  # (instance) -> int: how many ranks take part
    from_table: Target | None = None  # (instance, file[, file of flows]) -> solution: the inverse; raises InputError
    bound_words: Target | None = None  # (instance, certificate) -> str | None: what it proves, in words
    refutes: Target | None = None  # (method options, bound, certificate) -> bool: the question has no answer
    frames: Target | None = None  # (instance, solution) -> synth.views.frames.Frames | None: the report's player
    transfers: Target | None = (
        None  # (instance, solution) -> synth.exchange.transfers.Transfers: `synth export`; raises InputError
    )
    demands: Target | None = (
        None  # the same where no executor knows the collective, as data from one rank to another: `synth run` alone
    )
    timing: Target | None = None  # (instance, Algorithm or bytes -> moves, service) -> float: what runs takes so long
    varied: Target | None = None  # (instance, bandwidth, latency, seed) -> instance with links faster and slower
    breakable: Target | None = None  # (instance) -> synth.drill.breakable.Breakable: what may fail, `synth drill`
    series: Target | None = (
        None  # (instance) -> (what it shares with others of other sizes, bytes) | None: bandwidth curves
    )
    planner: Target | None = None  # (instance) -> synth.planning.Planning: plans of many demands on its machine
    paper: Target | None = None  # (synth.reproduction.collect.Reproduction) -> None: `synth reproduce`
    findings: Target | None = None  # tuple[synth.findings.finding.Finding, ...]: `synth reproduce findings`
    more_pages: tuple[Page, ...] = ()  # further pages of `synth reproduce`, beside the one of the family's own name

    @property
    def pages(self) -> tuple[Page, ...]:
        """Its own page, if it has one, and the others."""
        own = () if self.paper is None else (Page(self.name, self.title, self.citation, self.paper),)
        return (*own, *self.more_pages)

    def method(self, name: str) -> Method:
        """The method of that name. Raises :class:`InputError` naming the known ones."""
        if name not in self.methods:
            why = entry_points.complaint(entry_points.METHODS, f"{self.name}.{name}")
            words = f"unknown method {name!r} of family {self.name}; {one_of(name, self.methods)}"
            raise InputError(f"{words}; {why}" if why else words)
        return self.methods[name]


def rooms(
    package: str, instance: str, keys: str, check: str, papers: str | None = None, **others: str
) -> dict[str, Any]:
    """The targets of a family whose rooms and functions bear the plan's names: ``instance``, ``keys`` and ``check``
    (the replay) are named, ``others`` are targets within the package that have a name or room of their own. ``papers``
    is the package of its page and findings, if it has them; that package need not be installed."""
    parts = {
        "instance": f"instance:{instance}",
        "keys": f"making:{keys}",
        "make": "making:make",
        "check": f"check.replay:{check}",
        "check_bound": "check.certificates:check_bound",
        **{name: f"solution:{name}" for name in ("pack", "unpack", "table")},
        **{name: f"views.{name}:{name}" for name in ("describe", "plot", "frames")},
        **others,
    }
    pages = {} if papers is None else {"paper": f"{papers}.page:reproduce", "findings": f"{papers}.findings:FINDINGS"}
    return {name: f"{package}.{target}" for name, target in parts.items()} | pages


def by_name(*methods: Method) -> Mapping[str, Method]:
    """Methods as a read-only mapping from their names, in this order."""
    return MappingProxyType({method.name: method for method in methods})


def defaults_for(family: Family, instance: Instance) -> Sequence[str]:
    """The methods to run on this instance when the user names none."""
    if family.suited is None:
        return family.default_methods
    suited = load(family.suited)
    return tuple(name for name in family.default_methods if suited(instance, name))


def family_names() -> list[str]:
    """Names of all installed families, also of one that cannot be loaded."""
    return list(entry_points.entries(entry_points.FAMILIES))


def families() -> Iterator[Family]:
    """All installed families that can be loaded, in order of their names."""
    for entry in entry_points.entries(entry_points.FAMILIES).values():
        if entry_points.load(entry_points.FAMILIES, entry, Family) is not None:
            yield get_family(entry.name)


def reproduced() -> dict[str, Page]:
    """All pages of all installed families by name."""
    return {page.name: page for family in families() for page in family.pages}


@cache
def get_family(name: str) -> Family:
    """The installed family of that name, with the methods that other distributions add to it. Raises
    :class:`InputError` naming the known ones, or saying why it cannot be loaded."""
    entry = entry_points.entries(entry_points.FAMILIES).get(name)
    family = None if entry is None else entry_points.load(entry_points.FAMILIES, entry, Family)
    if entry is None or family is None:
        words = entry_points.complaint(entry_points.FAMILIES, name)
        known = one_of(name, family_names(), "none is installed")
        raise InputError([Fault("", words or f"unknown family {name!r}; {known}")])
    origin = None if entry_points.is_ours(entry) else entry_points.origin(entry)
    own = [replace(method, origin=origin) for method in family.methods.values()]
    added = _added_methods(family)
    return replace(family, methods=by_name(*own, *added)) if added or origin else family


def _added_methods(family: Family) -> list[Method]:
    """The methods that other distributions add to a family. One that has the name of another is left out."""
    added = []
    for entry in entry_points.entries(entry_points.METHODS).values():
        of, _, name = entry.name.partition(".")
        method = entry_points.load(entry_points.METHODS, entry, Method) if of == family.name else None
        if method is None:
            continue
        origin = entry_points.origin(entry)
        if method.name != name:
            words = f"of {origin} names the method {method.name!r}: must be {of}.{method.name}"
        elif name in family.methods:
            words = f"of {origin} is left out: family {of} has a method {name} of its own"
        else:
            added.append(replace(method, origin=origin))
            continue
        entry_points.complain(entry_points.METHODS, entry.name, words)
    return added
