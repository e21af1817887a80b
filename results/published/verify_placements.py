"""The second checker's part for bine's placements of few ranks on a hypercube. Standard library alone."""

from collections import Counter, defaultdict
from functools import cache
from itertools import combinations, pairwise

from verify_base import cover


@cache
def most_inside(ways, weights):
    """Return the most that edges within parts can weigh, over all placements of the ranks on the hypercube's corners.

    ways: (weight, part of every rank) from the coarsest on, the next cuts its parts; weights: of a dimension's edges.
    A part's corners are a set, a whole number of bits; what it holds inside depends on the set alone."""
    ranks, corners = len(ways[0][1]) if ways else 0, 1 << len(weights)
    cover(ranks in (0, corners), "placements of fewer ranks than corners")
    within = [0] * (1 << corners)
    for taken in range(1, 1 << corners):
        last = taken.bit_length() - 1
        near = sum(w for j, w in enumerate(weights) if taken >> (last ^ (1 << j)) & 1)
        within[taken] = within[taken ^ (1 << last)] + near

    def tree(level, mine):
        """Return how some ranks fall into parts, level by level: nested sorted tuples, a number of ranks in the end."""
        if level == len(ways):
            return len(mine)
        parts = defaultdict(list)
        for rank in mine:
            parts[ways[level][1][rank]].append(rank)
        return len(mine), tuple(sorted(tree(level + 1, part) for part in parts.values()))

    @cache
    def best(level, free, parts):
        """Return the most for these parts of a level on the corners that are free; one of them has the lowest."""
        if not parts or level == len(ways):
            return 0
        lowest, found = free & -free, 0
        others = [1 << corner for corner in range(corners) if (free ^ lowest) >> corner & 1]
        for part in Counter(parts):
            rest = list(parts)
            rest.remove(part)
            size = part if type(part) is int else part[0]
            below = () if type(part) is int else part[1]
            for chosen in combinations(others, size - 1):
                mine = lowest + sum(chosen)
                value = ways[level][0] * within[mine] + best(level + 1, mine, below)
                found = max(found, value + best(level, free ^ mine, tuple(rest)))
        return found

    for (_, coarse), (_, fine) in pairwise(ways):
        owner = dict(zip(fine, coarse))
        cover(all(owner[f] == c for c, f in zip(coarse, fine)), "parts that are not parts of parts")
    return best(0, (1 << corners) - 1, tree(0, range(ranks))[1]) if ways else 0
