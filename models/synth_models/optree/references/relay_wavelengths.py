"""Wavelengths for circuits that are all rotations of a few, with as many hops per step as there are wavelengths.

For one step and direction let circuits of ``a_1 .. a_p`` hops start at every node, ``a = a_1 + .. + a_p`` in sum; all
``N`` rotations together load every link with ``a`` circuits.

**In blocks.** Lay the circuits that have more than one hop end to end as one arc of ``a`` hops. Cut the ring into
``q = floor(N/a)`` blocks of ``floor(N/q)`` or ``ceil(N/q)`` nodes and give the arc that starts at place ``y`` of its
block wavelength ``y``. Two arcs of one wavelength start at least ``floor(N/q) >= a`` links apart, so they never share a
link. This takes ``ceil(N/floor(N/a))`` wavelengths, ``a`` exactly when ``a`` divides ``N``. A few circuits may also be
split into groups, each with wavelengths of its own. Circuits of one hop take what is left on their links, where there
is always enough.

**By strands.** Otherwise fill up with one-hop dummies to ``a = w`` and follow ``w`` strands round the ring: at every
node ``p`` strands end and ``p`` circuits start, in any pairing. What must come out is that the circuits across node 0
get the wavelength they began with. Strands are paired at random (by the seed); wavelengths may change places among
strands that end at the same node, and each moves home, to the strand that crosses node 0 with it, as soon as the two
meet. A few attempts are made. With ``p = 1`` there is nothing to choose, and only divisors of ``N`` succeed.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit

ATTEMPTS = 30
MOST_GROUPED = 11  # circuits of more than one hop; the time for the best groups grows threefold with each


def colour_rotations(nodes: int, hops: list[int], wavelengths: int, seed: int) -> Int32Array | None:
    """Wavelength of the ``i``-th circuit that starts at node ``v`` and runs clockwise, shape (circuits, nodes).

    None when the load exceeds ``wavelengths`` or no colouring is found.
    """
    load, long = sum(hops), [length for length in hops if length > 1]
    if load > wavelengths:
        return None
    if (groups := _groups(nodes, long, wavelengths)) is not None:
        colours = np.empty((len(hops), nodes), np.int32)
        lengths = np.array(hops, dtype=np.int64)
        where, used = np.flatnonzero(lengths > 1), 0
        for members in groups:
            own = [long[member] for member in members]
            colours[where[members]] = used + _by_blocks(nodes, own)
            used += blocks_needed(nodes, sum(own))
        _single_hops(colours, lengths, wavelengths)
        return colours
    lengths = np.array(hops + [1] * (wavelengths - load), dtype=np.int64)
    for attempt in range(ATTEMPTS):
        colours, done = _by_strands(nodes, lengths, seed + attempt)
        if done:
            result: Int32Array = colours[: len(hops)]
            return result
    return None


def blocks_needed(nodes: int, arc: int) -> int:
    """Wavelengths of an arc of ``arc <= nodes`` hops from every node, in blocks: ``ceil(N / floor(N / arc))``."""
    return -(-nodes // (nodes // arc))


def _groups(nodes: int, hops: list[int], wavelengths: int) -> list[list[int]] | None:
    """Circuits (their places in ``hops``) that are laid end to end, in groups that together fit the wavelengths, or
    None: all in one group, else up to ``MOST_GROUPED`` circuits in the groups that need the fewest."""
    if sum(hops) <= safe_load(nodes, wavelengths):
        return [list(range(len(hops)))] if hops else []
    if len(hops) > MOST_GROUPED:
        return None
    left = 2 ** len(hops) - 1
    needed, choice = _fewest_by_groups(nodes, np.array(hops, dtype=np.int64))
    if needed[left] > wavelengths:
        return None
    groups = []
    while left:
        group = int(choice[left])
        groups.append([i for i in range(len(hops)) if group >> i & 1])
        left ^= group
    return groups


@jit
def _fewest_by_groups(nodes: int, hops: IntArray) -> tuple[IntArray, IntArray]:
    """Per set of circuits (a bit mask) the fewest wavelengths in groups, and the group that holds its first circuit."""
    sets = 1 << len(hops)
    needed, choice = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    alone = np.zeros(sets, np.int64)  # wavelengths of one group
    for chosen in range(1, sets):
        arc = 0
        for i in range(len(hops)):
            arc += hops[i] * (chosen >> i & 1)
        alone[chosen] = (nodes - 1) // (nodes // arc) + 1 if arc <= nodes else 1 << 40
    for chosen in range(1, sets):
        needed[chosen] = 1 << 50
        group = chosen
        while group > 0:
            if group & chosen & -chosen:
                total = needed[chosen ^ group] + alone[group]
                if total < needed[chosen]:
                    needed[chosen], choice[chosen] = total, group
            group = (group - 1) & chosen
    return needed, choice


def safe_load(nodes: int, wavelengths: int) -> int:
    """The most hops per step and direction that always find wavelengths, in blocks: the largest ``a`` with
    ``ceil(N / floor(N / a)) <= w``. At least 1 and at most ``nodes``."""
    blocks = -(-nodes // min(wavelengths, nodes))  # the fewest that are no longer than w
    return nodes // blocks


def _by_blocks(nodes: int, hops: list[int]) -> Int32Array:
    blocks = nodes // sum(hops)
    starts = np.arange(nodes)
    first = (np.arange(blocks) * nodes) // blocks
    place = starts - first[np.searchsorted(first, starts, side="right") - 1]
    offsets = np.cumsum([0, *hops[:-1]])
    return np.stack([place[(starts - offset) % nodes] for offset in offsets]).astype(np.int32)


@jit
def _single_hops(colours: Int32Array, lengths: IntArray, wavelengths: int) -> None:
    """Give the circuits of one hop the lowest wavelengths that the longer ones leave free on their link, in place."""
    circuits, nodes = colours.shape
    free = np.ones((nodes, wavelengths), np.bool_)
    for i in range(circuits):
        if lengths[i] > 1:
            for v in range(nodes):
                for back in range(lengths[i]):
                    free[(v + back) % nodes, colours[i, v]] = False
    for v in range(nodes):
        wave = 0
        for i in range(circuits):
            if lengths[i] == 1:
                while not free[v, wave]:
                    wave += 1
                colours[i, v] = wave
                wave += 1


@jit
def _by_strands(nodes: int, lengths: IntArray, seed: int) -> tuple[Int32Array, bool]:
    """Colours of shape (circuits, nodes) and whether they close round the ring."""
    np.random.seed(seed)
    count, width = len(lengths), lengths.sum()
    strand = np.empty((count, nodes), np.int32)  # strand of every circuit
    ends = np.zeros(width, np.int64)  # node at which the strand's circuit ends
    home = np.full(width, -1, np.int64)  # of the wavelength with which the strand begins: the strand it must end on
    crossing = np.full((count, lengths.max() + 1), -1, np.int64)  # strand that begins with circuit i started at -back
    k = 0
    for i in range(count):
        for back in range(1, lengths[i]):
            ends[k] = lengths[i] - back
            crossing[i, back] = k
            k += 1
    # pass 1: strands
    breaking = np.empty((nodes, count), np.int32)
    for v in range(nodes):
        found = 0
        for s in range(width):
            if ends[s] == v:
                breaking[v, found] = s
                found += 1
        order = np.random.permutation(count)
        for j in range(count):
            i = order[j]
            s = breaking[v, j]
            strand[i, v] = s
            ends[s] = v + lengths[i]
            back = nodes - v
            if back < lengths[i]:
                home[crossing[i, back]] = s
    # pass 2: wavelengths move home where strands meet
    token = np.arange(width)
    colours = np.empty((count, nodes), np.int32)
    waiting = np.empty(count, np.int64)
    here = np.full(width, -1, np.int64)
    for v in range(nodes):
        for j in range(count):
            here[breaking[v, j]] = v
        left = 0
        for j in range(count):  # lift every wavelength whose home is not here
            t = token[breaking[v, j]]
            if home[t] < 0 or here[home[t]] != v:
                waiting[left] = t
                left += 1
        settled = np.full(count, -1, np.int64)
        for j in range(count):
            t = token[breaking[v, j]]
            if home[t] >= 0 and here[home[t]] == v:
                for m in range(count):
                    if breaking[v, m] == home[t]:
                        settled[m] = t
                        break
        for j in range(count):
            if settled[j] < 0:
                left -= 1
                settled[j] = waiting[left]
        for j in range(count):
            token[breaking[v, j]] = settled[j]
        for i in range(count):
            colours[i, v] = token[strand[i, v]]
    for i in range(count):
        for back in range(1, lengths[i]):
            if colours[i, nodes - back] != crossing[i, back]:
                return colours, False
    return colours, True
