"""What ``synth drill`` asks of a fabric instance: its failures by orbit, the instance of each, schedules carried over.

The protocol is :class:`synth.drill.breakable.Breakable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.drill.breakable import Cut
from synth.errors import InputError
from synth.making import cut_name, plain_name
from synth.schedule.collective import ROOTED
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.single_failures import Failure, Orbit, every_failure, named, orbits, pairs_of
from synth_models.fabric.problem.symmetries import Symmetries
from synth_models.fabric.scheduling import renumbered
from synth_models.fabric.solution import Quotient, Schedule, expanded

Pair = tuple[int, int]
MEMBER, ROOT = 1, 2


class Breakable:
    """A fabric instance whose links, switches and groups may fail."""

    def __init__(self, instance: FabricInstance) -> None:
        if instance.collectives is not None:
            raise InputError("synth drill takes one collective; the instance has several")
        if instance.ready is not None:
            raise InputError("synth drill takes ranks that are all ready at once; the instance has ready times")
        self.instance = instance
        self.machine = instance.machine

    def names(self) -> list[str]:
        """Of the nodes, then of the groups."""
        return [*self.machine.names, *self.machine.group_names]

    def ranks(self) -> list[int]:
        """The members."""
        return list(self.instance.members)

    def orbits(self, share: str | None, most_pairs: int | None) -> list[Orbit]:
        """The single failures by orbit; with ``most_pairs`` all pairs of them too. With ``share`` (what is left of the
        bandwidth) links and groups alone. Raises :class:`InputError` for more pairs than that."""
        symmetries = Symmetries(self.machine, self._roles())
        singles = every_failure(self.machine, share is not None)
        found = orbits(singles, symmetries)
        if most_pairs is not None:
            count = len(singles) * (len(singles) - 1) // 2
            if count > most_pairs:
                raise InputError(f"{count} pairs of failures are more than --pairs {most_pairs}")
            found += orbits(list(pairs_of(singles)), symmetries)
        return found

    def _roles(self) -> Any:
        """What symmetries must keep of each node: whether it is a member, the root; of a demand, which rank it is."""
        role = np.zeros(self.machine.nodes, dtype=np.int64)
        members = list(self.instance.members)
        role[members] = MEMBER
        if self.instance.the_root is not None:
            role[self.instance.the_root] = ROOT
        if self.instance.collective in ("demand", "traffic"):
            role[members] = np.arange(len(members)) + ROOT
        return role

    def broken(self, failure: Failure, share: str | None) -> FabricInstance:
        """The instance with the failure. Raises :class:`InputError` where the ranks no longer reach each other."""
        stated = failure.stated(share)
        old = self.instance.failed
        shares = {(u, v): left for u, v, left in old.reduced or ()}
        reduced = [[u, v, _less(left, shares.pop((u, v), None))] for u, v, left in stated.get("reduced", ())]
        gone = {*map(tuple, stated.get("links", ())), *old.links}
        reduced += [[u, v, left] for (u, v), left in shares.items() if (u, v) not in gone]
        merged: dict[str, Any] = {
            "links": sorted(map(list, gone)),
            "nodes": sorted({*stated.get("nodes", ()), *old.nodes}),
        }
        merged |= {"reduced": reduced} if reduced else {}
        words = f"{failure.name}{'' if share is None else f' at {share} of its rate'} failed"
        source = f"{self.instance.source}. {words}"
        update = {"failed": merged, "name": self.name_of(failure, share), "source": source}
        return self.instance.model_copy(update=update)

    def name_of(self, failure: Failure, share: str | None) -> str:
        """The name of the instance with the failure, such as ``…-without-link-0.gpu0-0.nic0``."""
        word = "without" if share is None else f"at-{share.replace('/', 'of')}"
        return cut_name(f"{self.instance.name}-{word}-{plain_name(failure.name)}")

    def cut(self, failure: Failure) -> Cut | None:
        """How the failure parts the ranks, None where all still reach each other: the parts, and a set of nodes that
        no link leaves any more, with the failed links that left it."""
        names, whole, gone = self.machine.names, self.machine.network, failure.pairs
        left = [e for e, pair in enumerate(zip(whole.src.tolist(), whole.dst.tolist(), strict=True)) if pair in gone]
        machine = self.machine.without(left, ())
        members = set(self.instance.members)
        for source, targets in self._needs():
            closed = set(np.flatnonzero(machine.reached_from(source)).tolist())
            if targets <= closed:
                continue
            parts = machine.parts_of(self.instance.members)
            if self.instance.collective in (*ROOTED, "demand", "traffic"):
                parts = [sorted(members & closed), sorted(members - closed)]
            lost = [f"{names[u]} -> {names[v]}" for u, v in sorted(gone) if u in closed and v not in closed]
            return Cut([[names[v] for v in one] for one in parts], [names[v] for v in sorted(closed)], lost)
        return None

    def _needs(self) -> list[tuple[int, set[int]]]:
        """Ranks and the ranks that must be reached from each."""
        instance, members = self.instance, list(self.instance.members)
        if instance.collective == "demand":
            rows = instance.demand or ()
            return [(u, {v for w, v, _ in rows if w == u}) for u in dict.fromkeys(u for u, _, _ in rows)]
        if instance.traffic is not None:
            blocks = instance.blocks
            ends = zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.sums.tolist(), strict=True)
            needed = [(origin, goal) for origin, goal, adds in ends if adds or origin >= 0]
            return [(u, set(blocks.ranks(goal, ()))) for origin, goal in needed for u in blocks.ranks(origin, ())]
        root = instance.the_root
        if root is None:
            return [(u, set(members)) for u in members]
        outwards = instance.collective in ("broadcast", "scatter")
        return [(root, set(members))] if outwards else [(u, {root}) for u in members]

    def find(self, text: str, share: str | None) -> Failure:
        """The failure that a person means by ``text``, as the machine names nodes; where a single switch (an NIC) joins
        two nodes and nothing else, the link between these is it. Raises :class:`InputError`."""
        singles = every_failure(self.machine, share is not None)
        names = {failure.name: failure for failure in singles}
        if text.strip() in names:  # a group, or a name with blanks
            return names[text.strip()]
        word = named(text, self.machine)
        for failure in singles:
            if self._is(word, failure):
                return failure
        if isinstance(word, int):
            raise InputError(f"{text!r}: of nodes, switches with links may fail{self._not_slow(share)}")
        between = self._between(*min(word))
        for failure in singles if len(between) == 1 else ():  # an NIC: of a rank and a switch, who names both means it
            [part] = failure.parts
            if between[0] in part.ends and (part.kind == "switch") == (share is None):
                return failure
        ends = " and ".join(self.machine.names[v] for v in min(word))
        raise InputError(f"{text!r}: there is no link between {ends}")

    def _between(self, u: int, v: int) -> list[int]:
        """The switches of which these two nodes are the only neighbours."""
        net = self.machine.network
        near: dict[int, set[int]] = {}
        for a, b in zip(net.src.tolist(), net.dst.tolist(), strict=True):
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
        return [w for w, others in near.items() if self.machine.is_switch[w] and others == {u, v}]

    @staticmethod
    def _not_slow(share: str | None) -> str:
        return "" if share is None else "; this drawer is for links at a share of their rate"

    @staticmethod
    def _is(word: frozenset[Pair] | int, failure: Failure) -> bool:
        [part] = failure.parts
        if isinstance(word, int):
            return part.kind == "switch" and part.ends == (word,)
        return part.kind == "link" and bool(word & part.pairs) and (part.pairs <= word or len(word) == 1)

    def core(self, failure: Failure) -> frozenset[Pair]:
        """The pairs of nodes that links still join, without switches that have but one neighbour left, and so on."""
        net, switch = self.machine.network, self.machine.is_switch
        left = set(zip(net.src.tolist(), net.dst.tolist(), strict=True)) - failure.pairs
        while True:
            neighbours: dict[int, set[int]] = {}
            for u, v in left:
                neighbours.setdefault(u, set()).add(v)
                neighbours.setdefault(v, set()).add(u)
            ends = {v for v, near in neighbours.items() if switch[v] and len(near) == 1}
            if not ends:
                return frozenset(left)
            left = {pair for pair in left if not ends & set(pair)}

    def used(self, schedule: Schedule | Quotient, broken: FabricInstance) -> frozenset[Pair]:
        """The directions from node to node that a schedule of the broken instance uses."""
        return renumbered.used_pairs(broken, expanded(broken, schedule))

    def carried(
        self, schedule: Schedule | Quotient, image: Any, source: FabricInstance, target: FabricInstance
    ) -> Schedule:
        """The schedule of ``source`` on ``target``, another member of its orbit or one whose failures it avoids; timed
        again where other links are slower there. Raises ``ValueError``."""
        moved = np.asarray(image, dtype=np.int64)
        shares = renumbered.moved_back(target.failed.shares, moved)
        gone = renumbered.moved_back(dict.fromkeys(target.failed.links, Fraction(0)), moved)
        shares |= {pair: left for pair, left in source.failed.shares.items() if pair in gone}
        before = _with_shares(source, {pair: shares[pair] for pair in shares if pair not in source.failed.links})
        listed = _timed_on(expanded(source, schedule), source, before)
        if listed is None:
            raise ValueError("it cannot be timed again on slower links: a route branches, or switches store")
        return renumbered.carried(listed, self.machine, moved, before, target)

    def seconds_slowed(
        self, schedule: Schedule | Quotient, source: FabricInstance, target: FabricInstance, most: float
    ) -> float | None:
        """Seconds of the schedule on a machine with the same links at other rates, by the check's replay; None where
        that is more than ``most``, or is not known."""
        from synth_models.fabric.check.replay import check_schedule  # an answer out of a drawer needs no replay

        listed = expanded(source, schedule)
        busy = renumbered.busy_seconds(target, listed)
        if max(busy.values(), default=0.0) > most:
            return None
        there = _timed_on(listed, source, target)
        verdict = None if there is None else check_schedule(target, there)
        if verdict is None or not verdict.ok or verdict.value is None or verdict.value > most:
            return None
        return float(verdict.value)

    def plot(self, losses: Mapping[str, float], orbits: list[Orbit], title: str) -> Any:
        """The machine with its links and switches coloured by what their loss costs, shares of the whole's time; the
        losses by the representatives' names, infinite where the ranks are parted."""
        from synth_models.fabric.views.loss_plot import plot_losses  # takes matplotlib a second

        of_pair: dict[Pair, float] = {}
        of_node: dict[int, float] = {}
        singles = [orbit for orbit in orbits if len(orbit.representative.parts) == 1]
        for orbit in singles:
            loss = losses.get(orbit.representative.name)
            if loss is None:
                continue
            for failure in orbit.members:
                [part] = failure.parts
                if part.kind == "switch":
                    of_node[part.ends[0]] = loss
                else:
                    of_pair |= {pair: max(loss, of_pair.get(pair, 0.0)) for pair in part.pairs}
        return plot_losses(self.machine, of_pair, of_node, title)


def _with_shares(instance: FabricInstance, shares: Mapping[Pair, Fraction]) -> FabricInstance:
    """The instance with these shares of the bandwidth left, by the ends of the link."""
    if shares == instance.failed.shares:
        return instance
    reduced = tuple((u, v, f"{left.numerator}/{left.denominator}") for (u, v), left in shares.items())
    failed = instance.failed.model_copy(update={"reduced": reduced or None})
    return instance.model_copy(update={"failed": failed})


def _timed_on(schedule: Schedule, source: FabricInstance, target: FabricInstance) -> Schedule | None:
    """The schedule on a machine with the same links: as it is where none that it uses is slower, else timed again, in
    the same order; None where that is not possible."""
    if target is source:
        return schedule
    links = np.unique(schedule.link)
    slower = target.machine.network.bandwidth[links] < source.machine.network.bandwidth[links]
    return renumbered.slowed(schedule, source, target) if slower.any() else schedule


def _less(share: str, before: str | None) -> str:
    """A share of a share."""
    found = Fraction(share) * Fraction(before or 1)
    return f"{found.numerator}/{found.denominator}"
