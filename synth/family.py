"""What a family is: one problem class, of one paper, as plain data.

A family names its parts by targets, ``"module:name"``, which are imported when they are needed, as its methods' are.
It runs nothing and knows nothing of pages, records or the command. Families are found through the entry-point group
``synth.families``, further methods of theirs through ``synth.methods``, so a distribution of its own can add both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from synth.errors import Fault, InputError, one_of
from synth.method import Method, Objective, Outcome, Target, Verdict, by_name, load
from synth.plugins import added, entry_points
from synth.plugins.former_fields import takes_former_fields

if TYPE_CHECKING:
    from synth.instance import Instance
    from synth.options import RunOptions

__all__ = [
    "Family", "Method", "Objective", "Outcome", "Page", "Target", "Verdict", "by_name", "function_of", "load", "rooms",
]  # fmt: skip

Capability = Literal[
    "suited",  # (instance, method name) -> bool: whether a default method fits the instance
    "unsuited",  # (instance, method name) -> str | None: why a default method does not fit, in a few words
    "raced",  # (method name) -> bool: whether it need not run by default once a schedule has met the bound
    "at_least",  # (instance, method name) -> float: what a reference's value is at least, 0 where that is not known
    "size",  # (instance) -> int: how many ranks take part
    "flow_table",  # (instance, solution) -> pandas.DataFrame: `show --csv --flows`
    "from_table",  # (instance, file[, file of flows]) -> solution: the inverse; raises InputError
    "moves",  # (instance, synth.schedule.moves.Moves) -> solution; raises InputError: what a user's method sends
    "bound_words",  # (instance, certificate) -> str | None: what it proves, in words
    "lifted",  # (method) -> its function for all instances, also those that it knows in a plainer form only
    "refutes",  # (method options, bound, certificate) -> bool: the question has no answer
    "frames",  # (instance, solution) -> synth.views.frames.Frames | None: the report's player
    "export",  # (instance, solution) -> synth.exchange.transfers.Transfers: `synth export`; raises InputError
    "demands",  # the same where no executor knows the collective, as data from one rank to another: `synth run` alone
    "timing",  # (instance, Algorithm or bytes -> moves, service, costs) -> float: what runs takes so long
    "varied",  # (instance, bandwidth, latency, seed) -> instance with links faster and slower
    "corners",  # (instance) -> {words: instance} at the ends of its machine's intervals, {} where it has none
    "failures",  # (instance) -> synth.drill.breakable.Breakable: what may fail, `synth drill`
    "traces",  # (instance, solution, prefix) -> files written, Chakra's, of what is no schedule; raises InputError
    "what_if",  # (instance, changes with commas) -> {change: instance so changed}; raises InputError
    "series",  # (instance) -> (what it shares with others of other sizes, bytes) | None: bandwidth curves
    "planning",  # (instance) -> synth.planning.Planning: plans of many demands on its machine
    "token_planning",  # (instance) -> synth.planning.TokenPlanning: plans of tokens that go to several experts
    "with_traffic",  # (instance, name, source, rows of bytes, holders, wanters) -> instance: those on its machine
    "on_links",  # (synth.network.links_table.LinksTable, name, source, collective, bytes) -> instance on it
    "network",  # (instance, solution) -> synth.network.links_table.LinksTable: what the solution builds
    "paper",  # (synth.reproduction.collect.Reproduction) -> None: `synth reproduce`
    "findings",  # tuple[synth.findings.finding.Finding, ...]: `synth reproduce findings`
]
"""What only some families can do."""


@dataclass(frozen=True)
class Page:
    """A page of ``synth reproduce`` by its name; ``target`` takes a
    :class:`synth.reproduction.collect.Reproduction` and fills it; ``in_parts``: it knows ``--only`` and
    ``--again``."""

    name: str
    title: str
    citation: str
    target: Target
    in_parts: bool = False


@takes_former_fields(Capability)
@dataclass(frozen=True)
class Family:
    """One problem class. Every part is a target; the signatures are those of the comments.

    ``check`` replays a solution from the instance alone; ``check_bound`` verifies a bound from its certificate and
    returns the faults found; ``pack`` gives a solution as plain values and flat numpy arrays, ``unpack`` is its inverse
    and raises ``ValueError`` on data that is no solution; ``table`` gives it as one flat table with stable columns.
    ``capabilities`` are the targets of what only some families can do, by the names of :data:`Capability`.
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
    published: tuple[str, ...] = ()  # methods of others, which ours are measured against: the paper's own first
    in_use: tuple[str, ...] = ()  # those of them that libraries run today, where a family says so
    capabilities: Mapping[Capability, Target] = field(default_factory=dict)
    more_pages: tuple[Page, ...] = ()  # further pages of `synth reproduce`, beside the one of the family's own name

    @property
    def pages(self) -> tuple[Page, ...]:
        """Its own page, if it has one, and the others."""
        own = [Page(self.name, self.title, self.citation, self.capabilities["paper"])] if self.can("paper") else []
        return (*own, *self.more_pages)

    @property
    def today(self) -> tuple[str, ...]:
        """What a user has without ours: the methods in use, where the family names them, else the published ones."""
        return self.in_use or self.published

    def opponents(self, baselines: Sequence[str] = ()) -> tuple[str, ...]:
        """What ours are measured against: those of a study's ``baselines`` that are methods of this family or in a
        file, else the published ones."""
        return tuple(name for name in baselines if name in self.methods or ":" in name) or self.published

    def can(self, what: Capability) -> bool:
        """Whether it has the capability."""
        return what in self.capabilities

    def capability(self, what: Capability) -> Any:
        """What stands behind the capability. Raises ``KeyError`` where the family has not got it."""
        return load(self.capabilities[what])

    def method(self, name: str) -> Method:
        """The method of that name. Raises :class:`InputError` naming the known ones."""
        if name not in self.methods:
            why = entry_points.complaint(entry_points.METHODS, f"{self.name}.{name}")
            words = f"unknown method {name!r} of family {self.name}; {one_of(name, self.methods)}"
            raise InputError(f"{words}; {why}" if why else words)
        return self.methods[name]


def function_of(
    family: Family, method: Method, at_hand: Callable[..., Any] | None = None
) -> Callable[[Any, RunOptions], Outcome]:
    """What runs the method on an instance of the family; ``at_hand``: its function, where it need not be loaded."""
    own = at_hand or method.load()
    function: Callable[[Any, RunOptions], Outcome]
    function = family.capability("lifted")(method, own) if family.can("lifted") else own
    return function


def rooms(
    package: str, instance: str, keys: str, check: str, papers: str | None = None, **capabilities: str
) -> dict[str, Any]:
    """The fields of a family whose rooms and functions bear the plan's names: ``instance``, ``keys`` and ``check``
    (the replay) are named, ``capabilities`` are targets within the package; ``table`` may be one that has another
    room. ``papers`` is the package of its page and findings, if it has them; that package need not be installed."""
    parts = {
        "instance": f"instance:{instance}",
        "keys": f"making:{keys}",
        "make": "making:make",
        "check": f"check.replay:{check}",
        "check_bound": "check.certificates:check_bound",
        **{name: f"solution:{name}" for name in ("pack", "unpack")},
        **{name: f"views.{name}:{name}" for name in ("describe", "plot")},
        "table": capabilities.pop("table", "solution:table"),
    }
    own = {name: f"{package}.{target}" for name, target in {"frames": "views.frames:frames", **capabilities}.items()}
    pages = {} if papers is None else {"paper": f"{papers}.page:reproduce", "findings": f"{papers}.findings:FINDINGS"}
    return {**{name: f"{package}.{target}" for name, target in parts.items()}, "capabilities": own | pages}


def defaults_for(family: Family, instance: Instance) -> Sequence[str]:
    """The methods to run on this instance when the user names none."""
    if not family.can("suited"):
        return family.default_methods
    suited = family.capability("suited")
    return tuple(name for name in family.default_methods if suited(instance, name))


BY_NAME = "not among the default ones (they take longer, are older, or answer another question)"


def not_run(family: Family, instance: Instance) -> dict[str, str]:
    """Of every method that runs on this instance only if it is named, why: a default one that does not fit, or none of
    the default ones."""
    fitting, words = set(defaults_for(family, instance)), {}
    for name in family.methods:
        if name in fitting:
            continue
        if name not in family.default_methods:
            words[name] = BY_NAME
        elif family.can("unsuited"):
            words[name] = str(family.capability("unsuited")(instance, name))
        else:
            words[name] = "for other instances"
    return words


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
    others = added.methods(family.name, family.methods)
    added.certificates(family.name)  # what is wrong with one is said before anything runs
    return replace(family, methods=by_name(*own, *others)) if others or origin else family
