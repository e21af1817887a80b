"""Method ``column_generation``: the program over candidates, with topologies made for the intervals where they pay.

The program over intervals (the paper's Lemma 1) over a list of topologies says what a topology for steps a to b may
take at most to be worth its change, its price pi(a,b) = T - F_a - B_b (30): T is the value over the list
(``Columns.value``), F_a and B_b are the least times of the steps before a and after b (``before``, ``after``), with the
changes paid. Where they are few, all topologies that the patterns' renumberings keep are rated first, and the best
path over them joins the list (:mod:`.cayley`). Then intervals whose steps alone take less than their price are priced:
a search over topologies with whole links (:mod:`.search`), first over those that all renumberings of the interval's
patterns keep, then over less and less symmetric ones, down to all of them. What is found joins the list if the
concurrent flows say that it lowers the value, and the program is solved again; until no interval is left or time is
up.

The pricing is a search, so nothing is proven; the value is never above that of ``candidates``, from whose list it
begins. With delays that depend on what changes, an interval's price counts the least of them, the value what is paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.bounds.automorphisms import generators
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays, least_paid
from synth_models.harvest.parts.demands import direct_load, fewest_hops, pattern_degree, routed_load
from synth_models.harvest.parts.ratings import Ratings
from synth_models.harvest.parts.shortest_path import cheapest_change, shortest_schedule
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.programs.column_generation.cayley_pools import MOST_GROUPS, apart, pools
from synth_models.harvest.programs.column_generation.copies import copies, in_all_copies, one_copy
from synth_models.harvest.programs.column_generation.lifts import Lift, lifts
from synth_models.harvest.programs.column_generation.regular_groups import regular_lifts
from synth_models.harvest.programs.column_generation.search import LONG, Demand, anneal, seconds
from synth_models.harvest.references.baselines import hold_ring

TRIES, TRIES_A_LINK = 400, 60  # moves of a search, and more for every link that is free
RESTARTS, MORE_RESTARTS, WORK = 2, 6, 12_000  # from random topologies, beside the best known: more where they are quick
GAIN = 1e-7  # relative: smaller ones are not pursued
REACH = 1.15  # searched intervals this much above their price are searched again with less symmetry
SHARE_OF_COPY, LARGEST_COPY = 0.1, 64  # of the time left that topologies for a copy take; GPUs of a copy
SHARE = 0.4  # of the time, in which annealing looks for Cayley graphs
SLACK = 1.05  # topologies within this of the price, by the search's own loads, are rated by concurrent flows


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The best schedule over candidates and topologies of its own; the seed decides where searches begin."""
    hold_ring(instance, options, "the rating of topologies")
    columns = Columns(instance, options)
    began = columns.value
    columns.search()
    used = {columns.ratings.topologies[number].name for number in columns.chosen.tolist()}
    message = f"{columns.ratings.tried()}, {columns.made} of them made here, {len(used & columns.names)} in use; "
    message += f"{columns.priced} searches; candidates alone {began:.6g} s"
    return Outcome("finished", columns.ratings.schedule(columns.chosen), message=message)


def own_topologies(instance: HarvestInstance, options: RunOptions) -> list[Topology]:
    """The topologies that the search adds to the candidates until ``options`` end it: a start for other methods."""
    columns = Columns(instance, options)
    columns.search()
    return [topology for topology in columns.ratings.topologies if topology.name in columns.names]


class Columns:
    """The list of topologies with the best schedule over it, and what the searches have in common."""

    def __init__(self, instance: HarvestInstance, options: RunOptions) -> None:
        self.instance, self.options = instance, options
        self.ratings = Ratings(instance, options)
        self.paid = [float(seconds) for seconds in least_paid(instance)]
        self.made, self.priced, self.deepest = 0, 0, 0
        self.names: set[str] = set()
        self.keys = {topology.key() for topology in self.ratings.topologies}
        self.alone = _alone(instance)
        self.groups: dict[tuple[int, ...], list[Lift]] = {}
        self.nearest: dict[tuple[int, int], tuple[float, IntArray]] = {}
        self.folded: dict[tuple[Lift, int], IntArray | None] = {}
        self.graphs: list[tuple[Lift, IntArray]] = []  # Cayley graphs that are rated, most of them not on the list,
        self.graph_cost = np.empty((len(instance.steps), 0))  # and their seconds, shape (steps, graphs)
        self._settle()

    def _settle(self) -> None:
        delays = Delays(self.instance, self.ratings.topologies)

        def search(cost: FloatArray) -> tuple[tuple[float, IntArray], Iterable[tuple[int, int]]]:
            found = shortest_schedule(cost, delays.before)
            return found, enumerate(found[1].tolist())

        self.value, self.chosen = self.ratings.settle(search)
        chosen, topologies = self.chosen, list(self.ratings.topologies)
        self.options.held.offer(lambda: self.ratings.schedule(chosen, topologies), self.value, self.ratings.tried())
        settled = self.ratings.settled[self.ratings.pattern_of]
        cost = np.where(settled, self.ratings.cost, np.inf)
        self._reach(cost, [delays.before(step) for step in range(len(cost))])

    def _reach(self, cost: FloatArray, paid: Sequence[float | FloatArray]) -> None:
        """Note the least times before and after every step, over topologies with this ``cost`` (steps, topologies)."""
        self.before = _arrivals(cost, paid)
        # backwards a change from one topology to another is paid before the later step
        turned = [np.asarray(paid[step]) for step in range(len(cost) - 1, 0, -1)]
        self.after = _arrivals(cost[::-1], [0.0, *(one.T if one.ndim else float(one) for one in turned)])[::-1]

    def search(self) -> None:
        """Make topologies, with less and less symmetry, until none is in reach of its price or time is up."""
        options, steps = self.options, len(self.instance.steps)
        self.offer_cayley()
        self.offer_copies()
        for level in range(self.instance.gpus.bit_length() + 1):
            done = np.zeros((steps, steps), dtype=bool)
            while (interval := self.most_promising(done)) is not None and not options.out_of_time():
                done[interval] = True
                for links in self.own(interval, level):
                    self.offer(interval, links)
                    options.progress.note(self.value, None)
            if options.out_of_time() or self.deepest <= level:
                break

    def offer_cayley(self) -> None:
        """Add the topologies of the best schedule over the list and Cayley graphs of the patterns' renumberings, by the
        search's own loads. Not where delays depend on what changes, or where no group leads from every GPU to every
        other."""
        regular = [] if self.instance.delay_varies else self.regular_lifts()
        if not regular:
            return
        instance, lift = self.instance, regular[0]
        kinds = self._kinds()
        first: dict[tuple[int, float], int] = {}
        for step, kind in enumerate(kinds):
            first.setdefault(kind, step)
        demands = [self.demand(lift, [pattern], step, step) for (pattern, _), step in first.items()]
        row = [list(first).index(kind) for kind in kinds]
        random = np.random.default_rng([instance.gpus, self.options.seed])
        stops = self.options.part(SHARE).out_of_time, self.options.out_of_time
        sought = self._sought(lift)
        found = pools(regular, instance.ports, demands, sought, instance.hop_delay, random, stops)
        self.graphs = [(pool.lift, targets) for pool in found for targets in pool.targets]
        self.graph_cost = np.hstack([self.graph_cost, *(instance.alpha + pool.seconds[row] for pool in found)])
        most = self._join_graphs()
        if most is not None:  # less symmetry is sought in the group that serves most
            self.groups[tuple(range(len(self.ratings.patterns)))] = lifts(most.generators, instance.gpus)

    def _with_graphs(self) -> FloatArray:
        """Seconds of every step on the list's topologies, then on the graphs."""
        cost = np.where(self.ratings.settled[self.ratings.pattern_of], self.ratings.cost, np.inf)
        return np.hstack([cost, self.graph_cost])

    def _join_graphs(self) -> Lift | None:
        """Put the graphs of the best schedule over list and graphs on the list, if that lowers the value; the group of
        the one that serves most steps."""
        cost, listed = self._with_graphs(), len(self.ratings.topologies)
        value, chosen = shortest_schedule(cost, lambda step: self.paid[step])
        if value >= self.value * (1 - GAIN) or not (chosen >= listed).any():
            return None
        taken, served = np.unique(chosen[chosen >= listed], return_counts=True)
        for number in taken.tolist():
            steps, (of, targets) = np.flatnonzero(chosen == number), self.graphs[number - listed]
            self._list((int(steps[0]), int(steps[-1])), of.links(targets[None, :]), np.inf)
        self._settle()
        return self.graphs[int(taken[served.argmax()]) - listed][0]

    def _kinds(self) -> list[tuple[int, float]]:
        """Of every step the number of its pattern, and the bytes of a pair: steps of one kind take equally long."""
        return list(zip(self.ratings.pattern_of.tolist(), self.instance.bytes_per_pair.tolist(), strict=True))

    def _sought(self, lift: Lift) -> list[tuple[Demand, float]]:
        """The intervals for which annealing looks for Cayley graphs, with their prices, less the alpha of their
        steps."""
        prices, alpha, found = self.prices(), self.instance.alpha, []
        for a, b in apart(self._relative_worth()):
            demand = self.demand(lift, self.heaviest_first(a, b), a, b)
            found.append((demand, float(prices[a, b]) - (b - a + 1) * alpha))
        return found

    def regular_lifts(self) -> list[Lift]:
        """Groups of renumberings that keep all patterns and lead from every GPU to every other in one way each."""
        largest, rows = self.lifts_of(range(len(self.ratings.patterns)))[0], self.ratings.patterns
        if len(largest.sources) > 1:
            return []
        random = np.random.default_rng([self.instance.gpus, len(rows), self.options.seed])
        kept = generators(rows, self.instance.gpus)
        return [largest, *regular_lifts(kept, rows, random, MOST_GROUPS, self.options.out_of_time)]

    def offer_copies(self) -> None:
        """Add topologies for intervals whose patterns fall apart into copies, made for one of these: the intervals
        first that have most to gain for their length. The steps before and after may be on graphs off the list."""
        lift = self.lifts_of(range(len(self.ratings.patterns)))[0]
        if self.instance.delay_varies or len(lift.sources) > 1:
            return
        kinds, done = self._kinds(), set[frozenset[tuple[int, float, int]]]()
        self._reach(self._with_graphs(), self.paid)
        relative = self._relative_worth()
        for place in np.argsort(-relative, axis=None, kind="stable").tolist():
            first, last = divmod(place, relative.shape[1])
            if relative[first, last] <= 0 or self.options.out_of_time():
                break
            times = Counter(kinds[first : last + 1])
            key = frozenset((pattern, size, count) for (pattern, size), count in times.items())
            parts = None if key in done else copies([self.ratings.patterns[k] for k, _ in times], lift)
            done.add(key)
            if parts is None or not 2 < parts.shape[1] <= LARGEST_COPY or self.worth()[first, last] <= 0:
                continue
            smaller = Columns(one_copy(self.instance, first, last, parts[0]), self.options.part(SHARE_OF_COPY))
            smaller.search()
            links = smaller.ratings.topologies[int(smaller.chosen[0])].links
            if self._list((first, last), in_all_copies(links, parts), self.price(first, last) * (1 - GAIN)):
                self._settle()
                self._join_graphs()
                self._reach(self._with_graphs(), self.paid)
        self._settle()

    def prices(self) -> FloatArray:
        """(30): seconds that a topology for steps a to b may take at most to lower the value, at [a, b]."""
        paid, steps = np.array(self.paid), len(self.alone)
        before = np.r_[0.0, self.before[:-1] + paid[1:]]
        after = np.r_[self.after[1:] + paid[1:], 0.0]
        found: FloatArray = self.value - before[:, None] - after[None, :]
        return np.where(np.triu(np.ones((steps, steps), dtype=bool)), found, -np.inf)

    def price(self, first: int, last: int) -> float:
        """The same of one interval."""
        return float(self.prices()[first, last])

    def worth(self) -> FloatArray:
        """By how much the price of steps a to b is above what they take alone, at [a, b]."""
        sums = np.cumsum([0.0, *self.alone])
        found: FloatArray = np.maximum(self.prices() - (sums[None, 1:] - sums[:-1, None]), 0.0)
        return found

    def _relative_worth(self) -> FloatArray:
        """The same in shares of what the steps take alone."""
        worth = self.worth()
        alone = np.where(worth > 0, self.prices() - worth, 1.0)
        found: FloatArray = np.divide(worth, alone, out=worth.copy(), where=alone > 0)
        return found

    def most_promising(self, done: BoolArray) -> tuple[int, int] | None:
        """The interval not ``done`` (steps, steps) to search next, None if no topology can be worth it: of those that
        have been searched the one whose best topology comes closest to its price, if it is within reach; of the others
        the one whose price is farthest above what its steps take alone."""
        prices, worth = self.prices(), self.worth()
        worth[done | (worth <= GAIN * self.value)] = 0.0
        for ends, (seconds_of, _) in self.nearest.items():
            if worth[ends] > 0:
                worth[ends] = max(0.0, prices[ends] / seconds_of - 1 / REACH)
        first, last = np.unravel_index(int(worth.argmax()), worth.shape)
        return (int(first), int(last)) if worth[first, last] > 0 else None

    def own(self, interval: tuple[int, int], level: int) -> list[IntArray]:
        """Topologies for an interval from searches of one symmetry, the best first, each within reach of its price."""
        first, last = interval
        patterns = self.heaviest_first(first, last)
        symmetries = self.lifts_of(patterns)
        self.deepest = max(self.deepest, len(symmetries) - 1)
        if level >= len(symmetries):
            return []
        lift, demand = symmetries[level], self.demand(symmetries[level], patterns, first, last)
        random = np.random.default_rng([self.options.seed, first, last, level])
        begins = self._best_known(lift, demand, interval)
        work = len(lift.sources) * self.instance.gpus * self.instance.ports * len(patterns)
        restarts = min(MORE_RESTARTS, RESTARTS + WORK // work)
        begins += [lift.regular(self.instance.ports, random) for _ in range(restarts)]
        tries = TRIES + TRIES_A_LINK * len(lift.sources) * self.instance.ports
        found: list[tuple[float, IntArray]] = []
        for begin in begins:
            if self.options.out_of_time():
                break
            seed = int(random.integers(1 << 31))
            targets, took = anneal(lift, demand, begin, self.instance.hop_delay, tries, seed, self.options.out_of_time)
            self.priced += 1
            found.append((took, lift.links(targets)))
        found.sort(key=lambda one: one[0])
        alpha = (last - first + 1) * self.instance.alpha
        if found and (interval not in self.nearest or found[0][0] + alpha < self.nearest[interval][0]):
            self.nearest[interval] = found[0][0] + alpha, found[0][1]
        return [links for took, links in found if took + alpha < SLACK * self.price(first, last)]

    def offer(self, interval: tuple[int, int], links: IntArray) -> None:
        """Add a topology to the list if it lowers the value."""
        if self._list(interval, links, self.price(*interval) * (1 - GAIN)):
            self._settle()

    def _list(self, interval: tuple[int, int], links: IntArray, price: float) -> bool:
        """Put a topology on the list if it takes less than the price; whether it is new and does."""
        name = f"own {self.made} for steps {interval[0]}-{interval[1]}"
        if links.tobytes() in self.keys or self.options.out_of_time():
            return False
        self.keys.add(links.tobytes())
        if not self.ratings.add(Topology(name, links), interval, price):
            return False
        self.names.add(name)
        self.made += 1
        return True

    def lifts_of(self, patterns: Sequence[int]) -> list[Lift]:
        """Symmetries that keep these patterns, the largest group first; those of all patterns where they lead from
        every GPU to every other."""
        every = tuple(range(len(self.ratings.patterns)))
        key = every if len(patterns) == len(every) or self._one_orbit(every) else tuple(sorted(patterns))
        if key not in self.groups:
            rows = [self.ratings.patterns[k] for k in key]
            self.groups[key] = lifts(generators(rows, self.instance.gpus), self.instance.gpus)
        return self.groups[key]

    def _one_orbit(self, every: tuple[int, ...]) -> bool:
        return len(self.lifts_of(every)[0].sources) == 1

    def heaviest_first(self, first: int, last: int) -> list[int]:
        """The interval's patterns; those whose loads take longest come first, so that poor topologies show soon."""
        weight: dict[int, float] = {}
        for step in range(first, last + 1):
            k = int(self.ratings.pattern_of[step])
            size = float(self.instance.bytes_per_pair[step]) * pattern_degree(self.ratings.patterns[k])
            weight[k] = weight.get(k, 0.0) + size
        return sorted(weight, key=lambda k: (-weight[k], k))

    def demand(self, lift: Lift, patterns: Sequence[int], first: int, last: int) -> Demand:
        """Steps ``first`` to ``last`` for the first GPUs of the lift's orbits; ``patterns`` are the interval's."""
        instance, starts, rows = self.instance, [], list[IntArray]()
        for k in patterns:
            mine = self.ratings.patterns[k]
            mine = mine[np.isin(mine[:, 0], lift.sources)]
            rows.append(mine[np.argsort(lift.orbit[mine[:, 0]], kind="stable")])
        offset = 0
        for mine in rows:
            cuts = np.searchsorted(lift.orbit[mine[:, 0]], np.arange(len(lift.sources) + 1))
            starts.append(offset + cuts)
            offset += len(mine)
        pairs = np.concatenate(rows)
        steps: dict[tuple[int, float], int] = {}
        for step in range(first, last + 1):
            key = (patterns.index(int(self.ratings.pattern_of[step])), float(instance.bytes_per_pair[step]))
            steps[key] = steps.get(key, 0) + 1
        table = [(k, size / instance.port_bandwidth, count) for (k, size), count in sorted(steps.items())]
        return Demand(
            np.array(starts, dtype=np.int64),
            np.ascontiguousarray(pairs[:, 1]),
            lift.orbit[pairs[:, 0]],
            pairs[:, 2].astype(np.float64),
            np.array([float(routed_load(self.ratings.patterns[k], instance.ports, instance.gpus)) for k in patterns]),
            np.array(table, dtype=np.float64),
        )

    def _best_known(self, lift: Lift, demand: Demand, interval: tuple[int, int]) -> list[IntArray]:
        """The best of the listed topologies that the lift's renumberings keep and of the best one found for the
        interval before, with idle ports filled; none where no such topology reaches all pairs."""
        ports = self.instance.ports
        cost = self.ratings.cost[interval[0] : interval[1] + 1].sum(axis=0)
        for number, topology in enumerate(self.ratings.topologies):
            if (lift, number) not in self.folded:
                self.folded[lift, number] = lift.folded(topology.links, ports)
        found = [self.folded[lift, number] for number in np.argsort(cost, kind="stable").tolist()]
        if interval in self.nearest:
            found.insert(0, lift.folded(self.nearest[interval][1], ports))
        best, least = list[IntArray](), LONG
        for targets in found:
            if targets is not None and (took := seconds(lift, demand, targets, self.instance.hop_delay, least)) < least:
                best, least = [targets], took
        return best


def _arrivals(cost: FloatArray, paid: Sequence[float | FloatArray]) -> FloatArray:
    """Least seconds of the steps up to every step, shape (steps,); ``paid[i]`` before step i."""
    total = cost[0].copy()
    found = [total.min()]
    for row, change in zip(cost[1:], paid[1:], strict=True):
        total = cheapest_change(total, change)[1] + row
        found.append(total.min())
    return np.array(found)


def _alone(instance: HarvestInstance) -> list[float]:
    """Seconds of every step below which no topology brings it: fewest hops and the busiest GPU's ports."""
    found = []
    for rows, size in zip(instance.demands, instance.bytes_per_pair, strict=True):
        unit = float(size) / instance.port_bandwidth
        hops = fewest_hops(rows, instance.ports)
        shared = instance.hop_delay * hops + unit * float(routed_load(rows, instance.ports, instance.gpus))
        load = direct_load(rows, instance.ports)
        if load is not None:
            shared = min(instance.hop_delay + unit * float(load), shared + instance.hop_delay)
        found.append(instance.alpha + shared)
    return found
