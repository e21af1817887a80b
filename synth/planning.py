"""Plans of demands that change from call to call: one machine, many matrices of bytes from rank to rank."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from synth.family import Capability, families
from synth.instance import Instance
from synth.making import make
from synth.method import Verdict

if TYPE_CHECKING:
    import numpy.typing as npt


class PlannedDemand(Protocol):
    """A schedule of one demand and a proven lower bound.

    ``seconds``: until the last byte has arrived; ``bound``: a certified lower bound of that, in seconds; ``gap``:
    (seconds − bound) / seconds; ``by``: what kind of plan it is; ``tried``: the references that ran, because their
    lower bound did not tell that they are no quicker; ``instance``, ``schedule``: the demand as an instance of its
    family and the schedule as a solution of it; ``proven``: the bound in words (``str``) with its ``certificate()``.
    """

    @property
    def seconds(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def by(self) -> str: ...
    @property
    def tried(self) -> tuple[str, ...]: ...
    @property
    def instance(self) -> Instance: ...
    @property
    def schedule(self) -> Any: ...
    @property
    def proven(self) -> Any: ...
    def check(self) -> Verdict:
        """Replay the schedule and verify the bound's certificate."""
        ...


class Planning(Protocol):
    """What plans demands on one machine; what it has found out about the machine serves all later calls."""

    @property
    def ranks(self) -> tuple[str, ...]:
        """Names of the ranks, in the order of a demand's rows and columns."""
        ...

    def plan(self, demand: npt.ArrayLike, better: bool = False, time_limit: str | float | None = 60.0) -> PlannedDemand:
        """Plan one demand: whole bytes from every rank (row) to every rank (column). ``better``: also by a linear
        program, within ``time_limit`` (seconds, or ``"20s"``). Raises :class:`synth.errors.InputError`."""
        ...

    def one_plan(self, demands: Sequence[npt.ArrayLike], near: Fraction = Fraction(0)) -> OnePlanned:
        """One fixed plan for all these demands, with what each loses by it; for those, too, of which every number
        differs by the share ``near`` at most. Raises :class:`synth.errors.InputError`."""
        ...


class PlannedCorner(Protocol):
    """A demand of a set under the set's one plan: see :class:`OnePlanned`."""

    @property
    def seconds(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def regret(self) -> float: ...
    @property
    def verdict(self) -> Verdict: ...


class OnePlanned(Protocol):
    """One fixed plan for a set of demands: the most ``seconds`` that any takes that asks for no more of any pair than
    one of the set; what each of the set (and all near it) takes at most, its bound, and its regret, seconds / bound −
    1; the worst regret; a bound and the regret of every average of the set; what the check found of the plan and of
    that bound."""

    @property
    def seconds(self) -> float: ...
    @property
    def corners(self) -> Sequence[PlannedCorner]: ...
    @property
    def worst_regret(self) -> float: ...
    @property
    def average_bound(self) -> float: ...
    @property
    def average_regret(self) -> float: ...
    @property
    def verdict(self) -> Verdict: ...


class PlannedTokens(PlannedDemand, Protocol):
    """One way of tokens: ``name`` is dispatch or combine; ``nic_bytes``: the most that come into a box or leave it;
    ``matrix_bytes``: bytes from rank to rank if each wanter had a copy of its own."""

    @property
    def name(self) -> str: ...
    @property
    def nic_bytes(self) -> int: ...
    @property
    def matrix_bytes(self) -> npt.NDArray[Any]: ...


class TokenPlanning(Protocol):
    """What plans the tokens of mixtures of experts on one machine, out to the experts and back."""

    @property
    def ranks(self) -> tuple[str, ...]:
        """Names of the ranks, in the order in which tokens count them."""
        ...

    def plan(
        self, source: npt.ArrayLike, goals: npt.ArrayLike, dispatch_bytes: int = 7392, combine_bytes: int = 14336
    ) -> tuple[PlannedTokens, PlannedTokens]:
        """Plan both ways. ``source[t]``: the rank that has token t, shape (tokens,); ``goals[t]``: the ranks of its
        experts, -1 for none, shape (tokens, most). Raises :class:`synth.errors.InputError`."""
        ...

    def read(self, file: str, placement: str | None = None) -> tuple[Any, Any]:
        """``source`` and ``goals`` of a table, with a placement of experts where it names these."""
        ...

    def drawn(self, **numbers: float) -> tuple[Any, Any]:
        """``source`` and ``goals`` of tokens that are drawn."""
        ...

    @property
    def boxes(self) -> tuple[tuple[str, ...], ...]:
        """Names of the ranks of every box."""
        ...

    def experts(self, file: str) -> tuple[Any, Any]:
        """As :meth:`read`, but the goals are experts."""
        ...

    def drawn_experts(self, **numbers: float) -> tuple[Any, Any]:
        """As :meth:`drawn`, but the goals are experts."""
        ...


def TokenPlanner(machine: str | Path | Instance, /, **keys: object) -> TokenPlanning:
    """What plans tokens on a machine, named as for :func:`Planner`. Raises :class:`synth.errors.InputError`, and
    :class:`synth.errors.UnsupportedError` where boxes are not alike."""
    found: TokenPlanning = _planner_of(machine, keys, "token_planning")
    return found


def Planner(machine: str | Path | Instance, /, **keys: object) -> Planning:
    """What plans demands on a machine: an instance whose machine and process group are meant, or a machine's name or
    file with the ``keys`` of ``synth make`` (``boxes=8``, ``failed="broken.txt"``).

    Examples:
        >>> planner = synth.Planner("dgx-h100", boxes=2)
        >>> planner.plan([[0 if i == j else 2**20 for j in range(16)] for i in range(16)]).check().ok
        True

    Raises :class:`synth.errors.InputError` listing every fault.
    """
    found: Planning = _planner_of(machine, keys, "planning")
    return found


def _planner_of(machine: str | Path | Instance, keys: dict[str, object], what: Capability) -> Any:
    family = next(family for family in families() if family.can(what))
    if not isinstance(machine, Instance):
        machine = make(family, {"machine": str(machine), **keys, "collective": "broadcast", "bytes": "1"})
    return family.capability(what)(machine)
