"""The collective algorithms of MPI libraries as messages from rank to rank, in the order of the ranks' numbers.

Written from open-mpi/ompi v4.1.4 (ompi/mca/coll/base: coll_base_allgather.c, _allreduce.c, _alltoall.c, _bcast.c,
_reduce.c, _reduce_scatter.c, _gather.c, _scatter.c, _topo.c; the same in its main branch @8efebee7) and openucx/ucc
@8263de47 (src/components/tl/ucp, coll_patterns). One ring is one ring, whatever other cycles the machine has. A rank
begins a step when all has come that it was sent in the steps before, as with blocking MPI_Sendrecv; in a segmented tree
it sends a segment on when it has it. Where a library takes another algorithm for so many ranks, a shape returns False.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synth.exchange.selection.library_messages import Moves

Shape = Callable[[Moves], bool]


def is_power(n: int) -> bool:
    """Whether n is a power of two."""
    return n & (n - 1) == 0


# What ranks hold of blocks: block b is rank b's, or the b-th share of one buffer.


def ring_allgather(moves: Moves) -> bool:
    """Every block around one ring."""
    n = moves.ranks
    for s in range(n - 1):
        moves.step((r, (r + 1) % n, [(r - s) % n], False) for r in range(n))
    return True


def ring_reduce_scatter(moves: Moves) -> bool:
    """Sums around one ring; block b ends at rank b."""
    n = moves.ranks
    for s in range(n - 1):
        moves.step((r, (r + 1) % n, [(r - 1 - s) % n], True) for r in range(n))
    return True


def two_rings_reduce_scatter(moves: Moves) -> bool:
    """UCC's: half of every block around one ring, half around its reverse."""
    n = moves.ranks
    for s in range(n - 1):
        moves.step(
            message
            for r in range(n)
            for message in ((r, (r + 1) % n, [2 * ((r - 1 - s) % n)], True),
                            (r, (r - 1) % n, [2 * ((r + 1 + s) % n) + 1], True))
        )  # fmt: skip
    return True


def ring_allreduce(moves: Moves) -> bool:
    """Reduce-scatter and allgather around one ring."""
    return ring_reduce_scatter(moves) and ring_allgather(moves)


def neighbour_exchange(moves: Moves) -> bool:
    """Pairs of blocks to and fro; of an odd number of ranks Open MPI takes its ring."""
    n = moves.ranks
    if n % 2:
        return False
    beside = [[(r + 1) % n, (r - 1) % n] if r % 2 == 0 else [(r - 1) % n, (r + 1) % n] for r in range(n)]
    moves.step((r, beside[r][0], [r], False) for r in range(n))
    new = [sorted((r, beside[r][0])) for r in range(n)]
    for s in range(1, n // 2):
        moves.step((r, beside[r][s % 2], new[r], False) for r in range(n))
        new = [new[beside[r][s % 2]] for r in range(n)]
    return True


def doubling_allgather(moves: Moves) -> bool:
    """All a rank has, to partners ever farther; of other numbers than powers of two Open MPI takes Bruck's."""
    n = moves.ranks
    if not is_power(n):
        return False
    for bit in range(n.bit_length() - 1):
        far = 1 << bit
        moves.step((r, r ^ far, range(r & -far, (r & -far) + far), False) for r in range(n))
    return True


def bruck_allgather(moves: Moves) -> bool:
    """Blocks from ranks ever farther ahead."""
    n, far = moves.ranks, 1
    while far < n:
        count = min(far, n - far)
        moves.step((r, (r - far) % n, [(r + k) % n for k in range(count)], False) for r in range(n))
        far *= 2
    return True


def to_all(moves: Moves) -> bool:
    """Everything straight to where it belongs, at once."""
    n = moves.ranks
    pairs = moves.collective == "alltoall"
    moves.step((r, (r + d) % n, [r * n + (r + d) % n if pairs else r], False) for d in range(1, n) for r in range(n))
    return True


def pairwise(moves: Moves) -> bool:
    """An alltoall with one partner a step."""
    n = moves.ranks
    for d in range(1, n):
        moves.step((r, (r + d) % n, [r * n + (r + d) % n], False) for r in range(n))
    return True


def bruck_alltoall(moves: Moves) -> bool:
    """Every block by the binary digits of its way."""
    n, far = moves.ranks, 1
    while far < n:
        sent: dict[int, list[int]] = {}
        for origin in range(n):
            for d in range(n):
                if d & far:
                    sent.setdefault((origin + d % far) % n, []).append(origin * n + (origin + d) % n)
        moves.step((r, (r + far) % n, sent[r], False) for r in sorted(sent))
        far *= 2
    return True


def halving_reduce_scatter(moves: Moves) -> bool:
    """Halves to partners ever nearer; the first ranks beyond a power of two hand their buffer to their neighbour."""
    n = moves.ranks
    power = 1 << (n.bit_length() - 1)
    left = n - power
    if left:
        moves.step((2 * k, 2 * k + 1, range(n), True) for k in range(left))
    rank = [2 * k + 1 for k in range(left)] + list(range(2 * left, n))
    own = [[2 * k, 2 * k + 1] for k in range(left)] + [[r] for r in range(2 * left, n)]
    far = power // 2
    while far:
        moves.step(
            (rank[k], rank[k ^ far], [b for j in range(power) if j & -far == (k ^ far) & -far for b in own[j]], True)
            for k in range(power)
        )
        far //= 2
    if left:
        moves.step((2 * k + 1, 2 * k, [2 * k], False) for k in range(left))
    return True


def doubling_allreduce(moves: Moves) -> bool:
    """Whole buffers with partners ever farther."""
    return knomial_allreduce(moves, 2)


def knomial_allreduce(moves: Moves, radix: int = 4) -> bool:
    """Whole buffers among groups of ``radix`` ranks ever farther apart; ranks beyond whole groups fold."""
    n, sizes, full = moves.ranks, list[int](), 1
    while full * radix <= n:
        sizes.append(radix)
        full *= radix
    if n // full > 1:
        sizes.append(n // full)
        full *= n // full
    left = n - full
    if left:
        moves.step((k, k - full, moves.blocks, True) for k in range(full, n))
    far = 1
    for size in sizes:
        moves.step(
            (r, r + (j - r // far % size) * far, moves.blocks, True)
            for turn in range(1, size)
            for r in range(full)
            for j in [(r // far + turn) % size]
        )
        far *= size
    if left:
        moves.step((k - full, k, moves.blocks, False) for k in range(full, n))
    return True


def _halved(moves: Moves) -> tuple[list[int], list[list[int]]]:
    """Rabenseifner's first half, partners ever farther: the ranks that took part and the blocks that each then has."""
    n, count = moves.ranks, moves.cut
    power = 1 << (n.bit_length() - 1)
    left, half = n - power, range(count // 2)
    other = range(count // 2, count)
    if left:
        moves.step(
            m for k in range(left) for m in ((2 * k, 2 * k + 1, other, True), (2 * k + 1, 2 * k, half, True))
        )  # fmt: skip
        moves.step((2 * k + 1, 2 * k, other, False) for k in range(left))
    rank = [2 * k for k in range(left)] + list(range(2 * left, n))
    held = [list(range(count)) for _ in range(power)]
    far = 1
    while far < power:
        middle = len(held[0]) // 2
        lower = [k & far == 0 for k in range(power)]
        moves.step(
            (rank[k], rank[k ^ far], held[k][middle:] if lower[k] else held[k][:middle], True) for k in range(power)
        )
        held = [held[k][:middle] if lower[k] else held[k][middle:] for k in range(power)]
        far *= 2
    return rank, held


def rabenseifner_allreduce(moves: Moves) -> bool:
    """Halving, then doubling."""
    rank, held = _halved(moves)
    far = len(rank) // 2
    while far:
        moves.step((rank[k], rank[k ^ far], held[k], False) for k in range(len(rank)))
        held = [sorted(held[k] + held[k ^ far]) for k in range(len(rank))]
        far //= 2
    left = moves.ranks - len(rank)
    if left:
        moves.step((2 * k, 2 * k + 1, moves.blocks, False) for k in range(left))
    return True


def rabenseifner_reduce(moves: Moves) -> bool:
    """Halving, then a binomial tree that gathers."""
    rank, held = _halved(moves)
    far = len(rank) // 2
    active = list(range(len(rank)))
    while far:
        moves.step((rank[k], rank[k ^ far], held[k], False) for k in active if k & far)
        for k in active:
            if not k & far:
                held[k] = sorted(held[k] + held[k ^ far])
        active = [k for k in active if not k & far]
        far //= 2
    return True


def linear(moves: Moves) -> bool:
    """The root with everybody at once."""
    n, collective = moves.ranks, moves.collective
    if collective == "broadcast":
        moves.step((0, r, moves.blocks, False) for r in range(1, n))
    elif collective == "scatter":
        moves.step((0, r, [r], False) for r in range(1, n))
    else:
        moves.step((r, 0, moves.blocks if collective == "reduce" else [r], collective == "reduce") for r in range(1, n))
    return True


def binomial_gather(moves: Moves) -> bool:
    """Ever larger ranges of ranks up a binomial tree."""
    n, far = moves.ranks, 1
    while far < n:
        moves.step((r, r - far, range(r, min(r + far, n)), False) for r in range(far, n, 2 * far))
        far *= 2
    return True


def knomial_gather(moves: Moves, radix: int = 4) -> bool:
    """The same among ``radix`` ranks at once."""
    n, far = moves.ranks, 1
    while far < n:
        moves.step(
            (r, r - r // far % radix * far, range(r, min(r + far, n)), False)
            for r in range(far, n, far)
            if r // far % radix
        )
        far *= radix
    return True


def binomial_scatter(moves: Moves) -> bool:
    """Ever smaller ranges of ranks down a binomial tree."""
    n = moves.ranks
    far = 1 << ((n - 1).bit_length() - 1)
    while far:
        moves.step((r, r + far, range(r + far, min(r + 2 * far, n)), False) for r in range(0, n - far, 2 * far))
        far //= 2
    return True


def scatter_ring_broadcast(moves: Moves) -> bool:
    """A binomial scatter, then one ring."""
    return binomial_scatter(moves) and ring_allgather(moves)


def scatter_doubling_broadcast(moves: Moves) -> bool:
    """A binomial scatter, then doubling; for powers of two."""
    return is_power(moves.ranks) and binomial_scatter(moves) and doubling_allgather(moves)


# Trees by the parent of every rank; the root is 0.


def chain(n: int, fanout: int = 1) -> list[int]:
    """Chains of equal length behind the root (coll_base_topo.c: the first are the longer ones)."""
    heads = np.cumsum([1, *(len(part) for part in np.array_split(np.arange(n - 1), min(fanout, n - 1)))]).tolist()
    return [0 if v == 0 or v in heads else v - 1 for v in range(n)]


def binary(n: int) -> list[int]:
    """Two children a rank, numbered level by level (ompi_coll_base_topo_build_tree)."""
    parent = [0] * n
    for v in range(n):
        level = (v + 1).bit_length() - 1
        for k in (1, 2):
            if v + (k << level) < n:
                parent[v + (k << level)] = v
    return parent


def binomial(n: int) -> list[int]:
    """A rank's parent has not its highest bit (ompi_coll_base_topo_build_bmtree)."""
    return [v & ~(1 << (v.bit_length() - 1)) if v else 0 for v in range(n)]


def knomial(n: int, radix: int = 4) -> list[int]:
    """A rank's parent has not its lowest digit that is not 0."""
    parent = [0] * n
    for v in range(1, n):
        far = 1
        while not v // far % radix:
            far *= radix
        parent[v] = v - v // far % radix * far
    return parent


def double_trees(n: int) -> tuple[list[int], list[int]]:
    """UCC's double binary tree (coll_patterns/double_binary_tree.h): in-order, and mirrored or shifted."""
    first = [0] * n
    for v in range(1, n):
        low = v & -v
        up = (v ^ low) | (low << 1)
        first[v] = up if up < n else v ^ low
    if n % 2 == 0:
        return first, [n - 1 - first[n - 1 - v] for v in range(n)]
    return first, [(first[(v - 1) % n] + 1) % n for v in range(n)]


def along(tree: Callable[[int], list[int]]) -> Shape:
    """A broadcast or reduce along a tree, segment by segment."""

    def run(moves: Moves) -> bool:
        moves.tree(tree(moves.ranks), moves.blocks, up=moves.collective == "reduce")
        return True

    return run


def double_tree(moves: Moves) -> bool:
    """Half of the data over each tree as a whole; a root that is not the tree's hands over its half first or last."""
    for half, parent in enumerate(double_trees(moves.ranks)):
        start, top = moves.clock, next(v for v, p in enumerate(parent) if p == v)
        moves.clock = 0
        if moves.collective == "broadcast" and top:
            moves.step([(0, top, [half], False)])
        if moves.collective != "broadcast":
            moves.tree(parent, [half], up=True)
        if moves.collective != "reduce":
            moves.tree(parent, [half])
        elif top:
            moves.step([(top, 0, [half], False)])
        moves.clock = max(moves.clock, start)
    return True
