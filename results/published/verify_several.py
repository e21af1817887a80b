"""Fabric's instances of several scenarios, or of several collectives: their replay, and what proves their bounds.

Both are put in front of the class that knows one collective; they read models/formats/fabric.md and instances.md."""

import copy
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise

from verify_base import INFINITE, cover, need, number, one_of, whole

OF_WHOEVER = ("cut", "prices", "gossip", "partition", "sum_rates")
OF_ALL = (*OF_WHOEVER, "nothing", "shares", "senders", "own_part", "deliveries", "sums", "moments", "orbit_moments",
          "timed_prices", "near_goals")  # fmt: skip
MOST_MEMBERS, MOST_ORDERED = 2048, 12  # of a joint argument; of collectives whose orders are looked at
MOST_STARTS = 2**24  # of transfers, in all scenarios together


def upwards(time):
    """Return the least double that is no less than an exact time."""
    nearest = float(time)
    return nearest if Fraction(nearest) >= time else math.nextafter(nearest, INFINITE)


def exact(value, name):
    return Fraction(repr(number(value, name, 0)))


class Scenarios:
    """One plan for scenarios: in each, ranks are ready at other moments, and the plan's order is kept."""

    def __init__(self, data, folder):
        cover(not data.get("ready"), "scenarios beside ready")
        super().__init__({**data, "scenarios": None}, folder)
        need(not self.stores, "scenarios: switches store")
        self.moments = [{v: exact(moment, "scenarios") for v, moment in rows} for rows in data["scenarios"]]
        alike = [len(mine) == len(rows) for mine, rows in zip(self.moments, data["scenarios"])]
        need(all(alike), "scenarios: a rank stands twice")
        need(all(set(mine) <= set(self.members) for mine in self.moments), "scenarios: not a member")

    def replay(self, held):
        super().replay(held)
        plan = self.schedule(held)
        cover(all(origin is None for origin, _, _ in self.blocks), "scenarios of what is no sum")
        cover(len(plan.starts) * len(self.moments) <= MOST_STARTS, f"{len(plan.starts)} transfers in all scenarios")
        for route in plan.routes:
            ends = [self.links[e][:2] for e in route]
            need(all(x[1] == y[0] for x, y in pairwise(ends)), f"route {route}: is no path")
        order = sorted(range(len(plan.starts)), key=lambda i: plan.starts[i])
        known = cache(lambda route, n: self.route(plan.ticks_per_s, route, n))
        took = [known(route, plan.sizes[piece]) for route, piece in zip(plan.routes, plan.pieces)]
        came = defaultdict(list)  # of a piece and a node: when the plan brings it, and by which transfer
        for i in order:
            came[plan.pieces[i], self.links[plan.routes[i][-1]].head].append((plan.starts[i] + took[i][2], i))
        for rows in came.values():
            rows.sort()
        ends = [self.one_scenario(plan, order, took, came, moments) for moments in self.moments]
        return upwards(Fraction(max(ends), plan.ticks_per_s))

    def one_scenario(self, plan, order, took, came, moments):
        """Return the tick at which a scenario ends: transfers wait for what they carry, and for their links."""
        ready = {v: math.ceil(moments.get(v, 0) * plan.ticks_per_s) for v in self.members}
        arrived, there, taken, free = {}, {}, defaultdict(int), defaultdict(int)
        for i in order:
            used, _, takes = took[i]
            place = plan.pieces[i], self.links[plan.routes[i][0]].tail
            now, rows = there.get(place, ready.get(place[1], 0)), came.get(place, ())
            while taken[place] < len(rows) and rows[taken[place]][0] <= plan.starts[i]:
                now = max(now, arrived[rows[taken[place]][1]])
                taken[place] += 1
            there[place] = now
            start = max([now, *(free[e] - begin for e, (begin, _) in used)])
            for e, (_, until) in used:
                free[e] = start + until
            arrived[i] = start + takes
        goals = {goal for _, goal, _ in self.blocks}
        return max([*arrived.values(), *(ready[v] for v in self.members if goals & {None, v})], default=0)

    def certify(self, held, bound):
        name = one_of(held.get("argument"), ("scenario", "whoever", *OF_ALL), "argument")
        cover(name not in OF_ALL, f"{name} of scenarios")
        me, later, stated = copy.copy(self), Fraction(0), Fraction(number(held["bound"], "bound"))
        inner = type(held)(held["certificate"])
        if name == "scenario":
            me.ready = self.moments[held.whole("of", 0, len(self.moments) - 1)]
        else:
            one_of(inner.get("argument"), OF_WHOEVER, "certificate.argument")
            own = self.members if any(x is None for x, _, _ in self.blocks) else {x for x, _, _ in self.blocks}
            later = min(max(moments.get(v, Fraction(0)) for moments in self.moments) for v in own)
        super(Scenarios, me).certify(inner, stated)
        need(bound <= stated + later, f"{name}: proves {float(stated + later)}")


class Several:
    """Several collectives at once, each on links and members of its own; ``one`` is the class of one of them."""

    def __init__(self, data, folder):
        common = {key: data[key] for key in ("network", "switching", "failed", "relay") if key in data}
        entries = data["collectives"]
        need(type(entries) is list and 1 <= len(entries) <= 256, "collectives: a list of 1 to 256")
        waits = any(entry.get("after") or entry.get("ready") for entry in entries) or data.get("ready")
        cover(not waits, "several collectives that wait for others, or whose ranks are late")
        self.parts = [self.one({**common, **entry}, folder) for entry in entries]
        need(all(len(p.members) > 1 or p.collective == "demand" for p in self.parts), "collectives: of one member")
        need(sum(part.bytes for part in self.parts) == data["bytes"], "bytes: is not the sum of the collectives'")
        self.release = [exact(entry.get("release", 0), "release") for entry in entries]
        self.priority = [whole(entry.get("priority", 1), 1, 10**6, "priority") for entry in entries]
        self.objective = one_of(data.get("objective") or "last_end", ("last_end", "weighted_ends"), "objective")
        members = sorted({v for part in self.parts for v in part.members})
        alone = {**common, "collective": "demand", "demand": [], "bytes": data["bytes"], "ranks": members}
        super().__init__(alone, folder)
        self.blocks, self.sums = [x for p in self.parts for x in p.blocks], any(p.sums for p in self.parts)
        at = {place: e for e, place in enumerate(self.places)}
        self.mine = [[at[place] for place in part.places] for part in self.parts]  # of each part's links: ours

    def replay(self, held):
        need("quotient_generators" not in held, "a quotient of several collectives")
        plan, T = self.schedule(held), held["ticks_per_s"]
        of_block = [k for k, part in enumerate(self.parts) for _ in part.blocks]
        local = [{e: i for i, e in enumerate(mine)} for mine in self.mine]
        moves, last, busy = [[] for _ in plan.blocks], [0] * len(self.parts), defaultdict(list)
        known = cache(lambda k, route, n: self.parts[k].route(T, route, n))
        for start, piece, route, add in zip(plan.starts, plan.pieces, plan.routes, plan.adds):
            k = of_block[plan.blocks[piece]]
            need(all(e in local[k] for e in route), f"route {route}: over links that collective {k} may not use")
            need(not add or self.parts[k].sums, f"adds: nothing is added in collective {k}")
            used, way, takes = known(k, tuple(local[k][e] for e in route), plan.sizes[piece])
            moves[piece].append((start, way, add))
            last[k] = max(last[k], start + takes)
            for e, (begin, until) in used:
                busy[self.mine[k][e]].append((start + begin, start + until))
        for e, rows in busy.items():
            rows.sort()
            need(all(x[1] <= y[0] for x, y in pairwise(rows)), f"link {e}: two transfers at a time")
        for k, part in enumerate(self.parts):
            ready, pieces = math.ceil(self.release[k] * T), [i for i, b in enumerate(plan.blocks) if of_block[b] == k]
            ends = [self.blocks[plan.blocks[i]][:2] for i in pieces]
            part.possession(ends, [moves[i] for i in pieces], dict.fromkeys(part.members, ready))
            last[k] = max(last[k], ready * part.sums)
        if self.objective == "last_end":
            return upwards(Fraction(max(last), T))
        return upwards(Fraction(sum(n * end for n, end in zip(self.priority, last)), T * sum(self.priority)))

    def certify(self, held, bound):
        one_of(held.get("argument"), ("several",), "argument")
        need(bound >= 0, "bound: below 0")
        known = defaultdict(Fraction)
        for row in held.list("alone"):
            k = whole(row["of"], 0, len(self.parts) - 1, "alone.of")
            stated = Fraction(number(row["bound"], "alone.bound"))
            self.parts[k].certify(type(held)(row["certificate"]), stated)
            known[1 << k] = max(known[1 << k], self.release[k] + stated)
        self.keep_time()
        rows = held.list("joint")
        need(not rows or len(self.members) <= MOST_MEMBERS, f"joint: of more than {MOST_MEMBERS} members")
        for row in map(type(held), rows):
            self.joint(row, known)
        parts, weights = range(len(self.parts)), sum(self.priority)
        if self.objective == "last_end":
            proven = max(known.values(), default=0)
        elif len(parts) > MOST_ORDERED:
            proven = sum(self.priority[k] * known[1 << k] for k in parts) / weights
        else:
            proven = self.in_any_order(known) / weights
        need(bound <= proven, f"several: proves {float(proven)}, not {float(bound)}")

    def in_any_order(self, known):
        """Return what priorities times ends add up to at least, whichever collective ends last, and before it."""
        last, least = [Fraction(0)], [Fraction(0)]  # by set of collectives, as bits
        for mask in range(1, 1 << len(self.parts)):
            inside = [k for k in range(len(self.parts)) if mask >> k & 1]
            last.append(max(known.get(mask, 0), *(last[mask ^ 1 << k] for k in inside)))
            least.append(min(least[mask ^ 1 << k] + self.priority[k] * last[mask] for k in inside))
        return least[-1]

    def joint(self, row, known):
        """Add what one price vector proves of sets of collectives."""
        length, sets = row.array("length", 0, 2**40, (len(self.links),)), row.list("of")
        need(len(row.list("bounds")) == len(sets), "joint: a bound for every set")
        parts = cache(lambda k: self.one_of_them(k, length))
        for mine, stated in zip(sets, row.list("bounds")):
            need(mine and len(set(mine)) == len(mine), "joint.of: an empty set, or one stands twice")
            mask, begin, left, needed = 0, [None] * len(self.links), [None] * len(self.links), 0
            for k in mine:
                mask |= 1 << whole(k, 0, len(self.parts) - 1, "joint.of")
                pays, before, behind = parts(k)
                needed += pays
                for e, x in enumerate(self.links if pays else ()):
                    if x.tail in before and (begin[e] is None or before[x.tail] < begin[e]):
                        begin[e] = before[x.tail]
                    if x.head in behind and (left[e] is None or self.latencies[e] + behind[x.head] < left[e]):
                        left[e] = self.latencies[e] + behind[x.head]
            self.bound = Fraction(number(stated, "joint.bounds", 0))
            need(needed < INFINITE, "joint: a goal cannot be reached")
            self.enough(needed, (length, begin, left))
            known[mask] = max(known[mask], self.bound)

    def one_of_them(self, k, length):
        """Return what collective k pays at least; and of nodes: ticks after which it begins there, and to its goals."""
        part, mine, members = self.parts[k], self.mine[k], self.parts[k].members
        prices, latencies = [length[e] for e in mine], [self.latencies[e] for e in mine]
        far = cache(lambda u: part.distances([u], prices))
        outside = any(part.out[v] or part.into[v] for v in set(part.ranks) - set(members))
        tree = spanning_tree(members, far) if part.pay_alone and not outside else 0
        ends = cache(lambda end: members if end is None else [end])
        farthest = cache(lambda x, y: max(far(u).get(v, INFINITE) for u in ends(x) for v in ends(y)))
        pays = sum(n * max(farthest(x, y), ((x is None) + (y is None)) * tree) for x, y, n in part.blocks)
        starts, goals = ({v for block in part.blocks for v in ends(block[i])} for i in (0, 1))
        release = min(int(self.release[k] * self.P), 2**59)
        before = part.distances(dict.fromkeys(starts, release), latencies)
        return pays, before, part.distances(goals, latencies, back=True)


def spanning_tree(members, far):
    """Return the cost of the least tree that joins all members, any edge in its cheaper direction."""
    first, *rest = members
    nearest, total = {v: min(far(first).get(v, INFINITE), far(v).get(first, INFINITE)) for v in rest}, 0
    while nearest:
        u = min(nearest, key=nearest.get)
        total += nearest.pop(u)
        for v in nearest:
            nearest[v] = min(nearest[v], far(u).get(v, INFINITE), far(v).get(u, INFINITE))
    return total
