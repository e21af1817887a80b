"""The second checker's part for harvest's lower bounds; ``verify.py``, which lies beside it, calls ``certify``.

It was written from models/formats/harvest.md (Certificate, 1 to 3) and shares no code with the toolkit. Not covered:
chains. Python's standard library alone; all numbers are exact.
"""

from collections import Counter, defaultdict
from fractions import Fraction
from operator import add

from verify_permutations import Permutations

DEEPEST, LARGEST, SCALE = 200, 2**40, 2**20
MOST_PRICED = 1024  # GPUs


class Wrong(Exception):
    """The certificate does not prove what it states, or is not as the page says."""


def need(condition, message):
    if not condition:
        raise Wrong(message)


def whole(value, least, most, name):
    need(type(value) is int and least <= value <= most, f"{name}: {value!r:.40} is no whole number in {least}..{most}")
    return value


def wholes(values, least, most, length, name):
    need(type(values) is list and len(values) == length, f"{name}: is no list of {length} numbers")
    return [whole(value, least, most, name) for value in values]


def multiplier(row):
    value = row.get("multiplier")
    need(type(value) in (int, float) and 0 <= value < float("inf"), f"multiplier: {value!r:.40}")
    return Fraction(value)


def certify(instance, held, bound):
    """Raise ``Wrong`` unless the certificate proves ``bound``; ``held``: it, with arrays read by ``held.array``."""
    unit = 1 / Fraction(2) ** held.whole("unit_exponent", -1000, 1000)
    steps, best, up_to = instance.steps, Counter(), [0]
    for i, step in enumerate(steps):
        best[i, i] = alone(instance, step) // unit
    if held.list("intervals"):
        facts, every = Facts(instance, held), None
        for entry in held["intervals"]:
            first = whole(entry.get("first"), 0, len(steps) - 1, "first")
            last = whole(entry.get("last"), first, len(steps) - 1, "last")
            interval = range(first, last + 1)
            if "permutations" in entry:
                need(entry["permutations"] is True, "permutations: is not true")
                every = every or Permutations(instance)
                proven = every.least(interval)
            else:
                proven = Interval(facts, interval).proves(entry, {}, 0)
            if proven is not None:
                best[first, last] = max(best[first, last], proven // unit)
    change = Fraction(instance.R) + Fraction(instance.circuit)
    changes = [0] + [max(0, change - Fraction(step.overlap)) // unit for step in steps[1:]]
    for c in range(len(steps)):
        for a in range(c, -1, -1):
            best[a, c] = max([best[a, c]] + [best[a, m] + best[m + 1, c] for m in range(a, c)])
        up_to.append(min(up_to[a] + changes[a] + best[a, c] for a in range(c + 1)))
    need(bound <= up_to[-1] * unit, f"intervals: prove {float(up_to[-1] * unit)} s, not {float(bound)} s")


# --- 1  What one step needs ---
def at_ends(volumes):
    """Return what every GPU sends, and what every GPU receives: lists of volumes."""
    sides = defaultdict(list), defaultdict(list)
    for pair, volume in volumes.items():
        for side, gpu in zip(sides, pair):
            side[gpu].append(Fraction(volume))
    return [[*side.values()] for side in sides]


def most_partners(volumes):
    return max(len(one) for side in at_ends(volumes) for one in side)


def fewest_hops(others, p):
    """Return the hops within which a GPU reaches so many others."""
    hops, reached = 1, p
    while reached < others:
        hops += 1
        reached += p**hops
    return hops


def whole_links(volumes, p):
    """Return the least volume on a link if every pair has links of its own."""
    found = Fraction(0)
    for one in {tuple(sorted(one)) for side in at_ends(volumes) for one in side}:
        loads = sorted({volume / k for volume in one for k in range(1, p + 1)})
        found = max(found, next(w for w in loads if sum(-(-volume // w) for volume in one) <= p))
    return found


def whole_routes(volumes, n, p):
    """Return a load below which whole links cannot carry the pairs: direct ones, and all else over two hops."""
    sides = [Counter(tuple(sorted(one)) for one in side) for side in at_ends(volumes)]
    load = max(sum(one) for side in sides for one in side) / p
    total = sum(Fraction(volume) for volume in volumes.values())

    def refuted(u):
        return any(2 * total - sum(m * direct(one, u, p) for one, m in side.items()) > p * n * u for side in sides)

    if refuted(load):
        more = load / 2
        for _ in range(48):
            load += more if refuted(load + more) else 0
            more /= 2
    return load


def direct(volumes, u, p):
    parts = []
    for volume in volumes:
        full = min(p, volume // u)
        parts += [u] * int(full) + ([volume - full * u] if full < p else [])
    return sum(sorted(parts)[-p:])


def alone(instance, step):
    """Return the seconds of a step on the best topology for it."""
    h, seconds, p = Fraction(instance.hop), Fraction(step.bytes) / Fraction(instance.b), instance.p
    others, shared = most_partners(step.volumes), seconds * whole_routes(step.volumes, instance.n, p)
    if others > p:
        return Fraction(instance.alpha) + h * fewest_hops(others, p) + shared
    return Fraction(instance.alpha) + min(h + seconds * whole_links(step.volumes, p), 2 * h + shared)


# --- 2  Patterns, orbits and prices ---
class Facts:
    """What all intervals share."""

    def __init__(self, instance, held):
        self.instance, self.n, self.p = instance, instance.n, instance.p
        apart = whole(held.get("by_bytes", 0), 0, 1, "by_bytes")
        numbers = {}
        for step in instance.steps:
            numbers.setdefault((frozenset(step.volumes.items()), step.bytes if apart else 0), len(numbers))
        self.of_step = [numbers[frozenset(x.volumes.items()), x.bytes if apart else 0] for x in instance.steps]
        self.patterns = [{pair: Fraction(volume) for pair, volume in one} for one, _ in numbers]
        flat = held.array("generators", 0, self.n - 1, (None, self.n))
        self.group = [flat[at : at + self.n] for at in range(0, len(flat), self.n)]
        need(all(len({*g}) == self.n for g in self.group), "generators: a row is no permutation")
        for g in self.group:
            for one in self.patterns:
                kept = all(one.get((g[u], g[v])) == volume for (u, v), volume in one.items())
                need(kept, "generators: change a pattern")
        pairs = sorted({u * self.n + v for one in self.patterns for u, v in one})
        self.orbit = {divmod(pair, self.n): orbit for pair, orbit in self.numbered(pairs).items()}
        self.sizes = [self.by_orbit(one) for one in self.patterns]
        self.others = [most_partners(one) for one in self.patterns]
        self.hops = [fewest_hops(others, self.p) for others in self.others]
        self.load = [whole_routes(one, self.n, self.p) for one in self.patterns]
        self.costs, self.bundles = {}, held.list("bundles")
        need(not self.bundles or self.n <= MOST_PRICED, f"bundles: for {MOST_PRICED} GPUs at most")
        self.label = [*self.numbered(range(self.n**2)).values()] if self.bundles else []
        self.columns = []
        if any("columns" in one for one in self.bundles):
            flat, many = held.array("columns", 0, 2**20, (None, max(self.label) + 1)), max(self.label) + 1
            self.columns = [flat[at : at + many] for at in range(0, len(flat), many)]
        self.bundles = [self.bundle(one) for one in self.bundles]

    def numbered(self, pairs):
        """Return the orbits of ordered pairs u·n + v (in ascending order), numbered in the order of their least."""
        n, found, number = self.n, dict.fromkeys(pairs, -1), 0
        for least in pairs:
            if found[least] < 0:
                found[least], left = number, [least]
                while left:
                    u, v = divmod(left.pop(), n)
                    for g in self.group:
                        image = g[u] * n + g[v]
                        if found[image] < 0:
                            found[image] = number
                            left.append(image)
                number += 1
        return found

    def by_orbit(self, pattern):
        sizes = Counter()
        for pair, volume in pattern.items():
            sizes[self.orbit[pair]] += volume
        return sizes

    def bundle(self, stated):
        """Return patterns with their prices by label, the prices of all patterns together, r, c and the budget."""
        n, column = self.n, range(max(self.label) + 1)
        if "columns" in stated:
            column = self.columns[whole(stated["columns"], 0, len(self.columns) - 1, "columns")]
        patterns = wholes(stated["patterns"], 0, len(self.patterns) - 1, len(stated["patterns"]), "patterns")
        need(len({*patterns}) == len(patterns) == len(stated["prices"]), "bundles: a pattern twice, or prices missing")
        rows = [wholes(row, 0, LARGEST, max(column) + 1, "prices") for row in stated["prices"]]
        prices = {k: [row[at] for at in column] for k, row in zip(patterns, rows)}
        ends = [stated[key] * n if len(stated[key]) == 1 else stated[key] for key in ("of_source", "of_destination")]
        r, c = (wholes(one, 0, LARGEST, n, "of_source, of_destination") for one in ends)
        total = [sum(over) for over in zip(*prices.values())] or [0] * len(column)
        for u in range(n):
            row, room = self.label[u * n : u * n + n], r[u]
            fits = all(total[label] <= room + c[v] for v, label in enumerate(row) if v != u)
            need(fits, "bundles: a pair's prices are above what its ends pay")
        return prices, total, r, c, self.p * (sum(r) + sum(c))

    def cost(self, number, k, most):
        """Return D of a pattern at a bundle's prices, over paths of at most ``most`` hops (None: of any)."""
        if (number, k, most) not in self.costs:
            n, price = self.n, self.bundles[number][0][k]
            into = [[price[self.label[u * n + v]] for u in range(n)] for v in range(n)]
            for v in range(n):
                into[v][v] = 0  # to stay: a path may have fewer hops
            sources = defaultdict(dict)  # one pair of every orbit stands for all
            for (u, v), label in sorted(self.orbit.items()):
                if (u, v) in self.patterns[k] and label not in {x for ends in sources.values() for x in ends}:
                    sources[u][label] = v
            paid = 0
            for u, ends in sources.items():
                far = [row[u] for row in into]
                hops = 1
                while hops != most:
                    nearer = [min(map(add, far, row)) for row in into]
                    hops += 1
                    if nearer == far:
                        break
                    far = nearer
                paid += sum(self.sizes[k][label] * far[v] for label, v in ends.items())
            self.costs[number, k, most] = paid
        return self.costs[number, k, most]


# --- 3  Intervals, their cases and rows ---
class Interval:
    """Consecutive steps on one topology."""

    def __init__(self, facts, steps):
        self.facts, self.steps = facts, steps
        self.mine = sorted({facts.of_step[i] for i in steps})
        self.arcs = {pair for k in self.mine for pair in facts.patterns[k]}
        self.bytes = {k: {facts.instance.steps[i].bytes for i in steps if facts.of_step[i] == k} for k in self.mine}

    def proves(self, entry, ranges, depth):
        """Return seconds, or None for a case that cannot be; ``ranges``: least and most hops by pattern."""
        need(depth <= DEEPEST and type(entry) is dict, "cases: too deep, or none")
        if "pattern" in entry:
            k = self.pattern(entry)
            need(len(self.bytes[k]) == 1, "cases: the steps of a divided pattern have unequal bytes")
            low, high = ranges.get(k, (self.facts.hops[k], None))
            hops = whole(entry.get("hops"), low, (high or self.facts.n) - 1, "hops")
            parts = (("within", (low, hops)), ("beyond", (hops + 1, high)))
            found = [self.proves(entry[key], {**ranges, k: part}, depth + 1) for key, part in parts]
            return min((one for one in found if one is not None), default=None)
        highs = {k: high for k, (_, high) in ranges.items() if high is not None}
        if "crowded" in entry:
            need(entry["crowded"] is True and self.crowded(highs), "cases: one that is called crowded has room")
            return None
        return self.by_rows(entry["rows"], ranges, highs)

    def pattern(self, entry):
        k = whole(entry.get("pattern"), 0, len(self.facts.patterns) - 1, "pattern")
        need(k in self.mine, "pattern: none of the interval")
        return k

    def crowded(self, highs):
        for h in {*highs.values()}:
            pairs = {pair for k, high in highs.items() if high <= h for pair in self.facts.patterns[k]}
            near = max(max(Counter(pair[side] for pair in pairs).values()) for side in (0, 1))
            if near > sum(self.facts.p**hop for hop in range(1, h + 1)):
                return True
        return False

    def by_rows(self, rows, ranges, highs):
        facts, instance, left, least = self.facts, self.facts.instance, defaultdict(Fraction), {}
        for i in self.steps:
            k, step = facts.of_step[i], instance.steps[i]
            left["L", k] += Fraction(instance.hop)
            left["u", k] += Fraction(step.bytes) / Fraction(instance.b)
        for k in self.mine:
            least["L", k] = ranges[k][0] if k in ranges else facts.hops[k]
            least["u", k] = whole_links(facts.patterns[k], facts.p) if highs.get(k) == 1 else facts.load[k]
            for orbit in facts.sizes[k]:
                left["a", orbit], least["a", orbit] = Fraction(0), 1
        proven = len(self.steps) * Fraction(instance.alpha)
        for row in rows:
            times = multiplier(row)
            terms, right = self.row(row, highs)
            proven += times * right
            for variable, coefficient in terms.items():
                left[variable] -= times * coefficient
        for variable, rest in left.items():
            need(rest >= 0, f"rows: they take more of {variable} than it costs")
            proven += rest * least[variable]
        return proven

    def row(self, row, highs):
        """Return the coefficients and the right side of an inequality >=."""
        kinds = {"volume": self.volume, "longest": self.longest, "limit": self.longest, "tree": self.tree,
                 "cycle": self.cycle, "rate": self.rate, "direct": self.direct}  # fmt: skip
        need(row.get("row") in kinds, f"row: {row.get('row')!r:.40}")
        return kinds[row["row"]](row, highs)

    def volume(self, row, _):
        k = self.pattern(row)
        sizes = {("a", orbit): -size for orbit, size in self.facts.sizes[k].items()}
        return {("u", k): self.facts.p * self.facts.n, **sizes}, 0

    def longest(self, row, highs):
        k, orbit = self.pattern(row), whole(row.get("orbit"), 0, 2**40, "orbit")
        need(orbit in self.facts.sizes[k], "orbit: not in the pattern")
        if row["row"] == "longest":
            return {("L", k): 1, ("a", orbit): -1}, 0
        need(k in highs, "limit: the pattern has none in this case")
        return {("a", orbit): -1}, -highs[k]

    def direct(self, row, _):
        k, p = self.pattern(row), self.facts.p
        need(self.facts.others[k] <= p and len(self.bytes[k]) == 1, "direct: too many partners, or unequal bytes")
        links, load = whole_links(self.facts.patterns[k], p), self.facts.load[k]
        return {("L", k): links - load, ("u", k): 1}, 2 * links - load

    def tree(self, row, _):
        nodes, parents, inwards = row.get("nodes"), row.get("parents"), row.get("inwards", False)
        need(type(nodes) is list and len(nodes) > 0 and inwards in (0, 1), "tree: no nodes, or in what direction")
        nodes = wholes(nodes, 0, self.facts.n - 1, len(nodes), "nodes")
        parents = wholes(parents, -(2**31), 2**31, len(nodes), "parents")
        need(len({*nodes}) == len(nodes), "tree: a GPU twice")
        terms, paths = Counter(), [Counter()]
        for i in range(1, len(nodes)):
            need(0 <= parents[i] < i, "tree: a parent stands before its child")
            arc = (nodes[parents[i]], nodes[i])[:: -1 if inwards else 1]
            need(arc in self.arcs, f"tree: {arc} is no pair of the interval")
            paths.append(paths[parents[i]] + Counter([("a", self.facts.orbit[arc])]))
            terms.update(paths[i])
        left, far, hop = len(nodes) - 1, 0, 1
        while left > 0:  # p GPUs are a hop away, p^2 two hops, …
            far += hop * min(left, self.facts.p**hop)
            left -= self.facts.p**hop
            hop += 1
        return terms, far

    def cycle(self, row, _):
        nodes = row.get("nodes")
        need(self.facts.p == 1 and type(nodes) is list and len(nodes) > 1, "cycle: one port, two nodes at least")
        walk = list(zip(nodes, nodes[1:] + nodes[:1]))
        need(self.arcs.issuperset(walk), "cycle: leaves the pairs of the interval")
        joined, beside = {nodes[0]}, defaultdict(set)
        for u, v in self.arcs:
            beside[u].add(v)
            beside[v].add(u)
        left = [nodes[0]]
        while left:
            new = beside[left.pop()] - joined
            joined |= new
            left += new
        return Counter(("a", self.facts.orbit[arc]) for arc in walk), len(joined)

    def rate(self, row, highs):
        facts, number = self.facts, whole(row.get("bundle"), 0, len(self.facts.bundles) - 1, "bundle")
        prices, total, r, c, budget = facts.bundles[number]
        for u, v in {pair for k, high in highs.items() if high == 1 for pair in facts.patterns[k]}:
            budget -= r[u] + c[v] - total[facts.label[u * facts.n + v]]
        rates = [wholes(one, 0, LARGEST, 2, "rates") for one in row["rates"]]
        need(len({k for k, _ in rates}) == len(rates), "rates: a pattern twice")
        terms, right = {}, -Fraction(SCALE**2 * budget)
        for k, stated in rates:
            need(k in prices and k in self.mine and stated >= 1, "rates: not of the bundle and the interval, or 0")
            rho, cost = stated / max(facts.patterns[k].values()), facts.cost(number, k, highs.get(k))
            terms["u", k] = cost * rho**2
            right += 2 * SCALE * cost * rho
        return terms, right
