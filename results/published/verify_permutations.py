"""The second checker's part for harvest's bounds over all topologies of one port a GPU. Standard library alone."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations

from verify_base import need

MOST_PERMUTED = 8  # GPUs whose permutations are all tried


class Permutations:
    """Every topology of one port a GPU is part of a permutation; on that each pair has one route."""

    def __init__(self, instance):
        need(instance.p == 1 and instance.n <= MOST_PERMUTED, f"permutations: of {instance.n} GPUs, {instance.p} ports")
        self.instance, self.found = instance, {}

    def least(self, interval):
        """Return the seconds of some steps on the best of them."""
        instance, patterns = self.instance, defaultdict(Fraction)
        for i in interval:
            patterns[frozenset(instance.steps[i].volumes.items())] += Fraction(instance.steps[i].bytes)
        often = Counter(frozenset(instance.steps[i].volumes.items()) for i in interval)
        seconds = [whole / Fraction(instance.b) for whole in patterns.values()]
        times = [often[pattern] for pattern in patterns]
        kinds = {kind for kind in zip(*map(self.kinds, patterns), strict=True) if None not in kind}
        best = min(
            Fraction(instance.hop) * sum(h * often for (h, _), often in zip(kind, times, strict=True))
            + sum(u * each for (_, u), each in zip(kind, seconds, strict=True))
            for kind in kinds
        )
        return len(interval) * Fraction(instance.alpha) + best

    def kinds(self, pattern):
        """Return of every permutation the longest route and the greatest load, or None where a pair has no route."""
        if pattern not in self.found:
            self.found[pattern] = [self.routed(after, pattern) for after in permutations(range(self.instance.n))]
        return self.found[pattern]

    def routed(self, after, pattern):
        load, longest = [0] * len(after), 0
        for (u, v), volume in pattern:
            at, hops = u, 0
            while at != v:
                load[at] += volume
                at, hops = after[at], hops + 1
                if at == u:
                    return None
            longest = max(longest, hops)
        return longest, max(load)
