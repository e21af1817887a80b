"""How many congestion-free phases a congested phase stands for. Belongs to the check; imports no method.

Two flows that share a link need different phases, so the fewest phases are the chromatic number of the conflicts
between the flows. Where all routes cross one spine that is the load L of the worst link: flows are edges of a bipartite
multigraph between up-links and down-links, which König colours with L colours. Flows over two spines use four links,
and L no longer suffices: on MLFM(2) the three flows 0.0 -> 0.2 -> 0.1, 0.1 -> 0.0 -> 0.2 and 0.2 -> 0.1 -> 0.0 put
two flows on every link of the ring 0.0, 0.2, 0.1, yet any two of them meet, so they need three phases, not two.

Counted by loads, a schedule claims fewer phases than it stands for, and may even claim fewer than any congestion-free
schedule has. ``tests/models/mlfm/test_counting_by_loads.py`` holds such a job: 11 servers on six leaves of MLFM(5) with
failures. Fourteen of its transfers, 12 + 1 + 1 of three kinds round a ring of leaves, meet pairwise on all routes: 14
phases at least. Yet 12 phases suffice when one of load 2 takes one transfer of each kind: 13 by loads. So refuting P
congestion-free phases would prove nothing of values counted by loads. Counted by colours, every value is the number of
phases of a congestion-free schedule, hence no less than the optimum; that schedule of 12 phases has the value 14.

Flows that are joined by no chain of conflicts do not matter to each other, so the worst connected part decides. Parts
of one-spine flows only need their load. The others are coloured first-fit; when that takes more than the load, fewer
colours are sought by branching on the flow with fewest colours left (DSATUR, Brélaz 1979), with a fixed allowance of
work so that the answer is the same everywhere. Beyond the allowance the
incumbent colouring is used: it never has too few colours.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit

WORK = 3_000_000  # conflicts looked at in the search for one number of colours
LARGEST = 1000  # flows of a connected part beyond which first-fit stands


def congestion_free_phases(links: IntArray) -> int:
    """The phases that flows need of which ``links`` (flows, 4) are the links, -1 where absent; at least 1.

    It is the fewest, unless the search of :data:`WORK` steps ends undecided; then it is the number of colours of a
    proper colouring, which is never too few. Raises ``RuntimeError`` should a colouring not be proper.
    """
    links = np.asarray(links, dtype=np.int64).reshape(-1, 4)
    links = links[(links >= 0).any(axis=1)]
    if not len(links):
        return 1
    load = int(np.unique(links[links >= 0], return_counts=True)[1].max())
    least = max(1, load)
    if least == 1 or not (links[:, 3] >= 0).any():
        return least
    part = _parts(links)
    for number in np.unique(part[links[:, 3] >= 0]):
        least = max(least, _colours(links[part == number], least))
    return least


def _colours(links: IntArray, enough: int) -> int:
    """The colours of one connected part; any number up to ``enough`` is as good as that."""
    count = np.unique(links[links >= 0], return_counts=True)
    heavy = np.zeros(int(links.max()) + 2, dtype=np.int64)
    heavy[count[0]] = count[1]
    order = np.lexsort((np.arange(len(links)), -heavy[links].sum(axis=1)))  # the place of -1 is the last, 0
    colour = _first_fit(links, order)
    if len(links) <= LARGEST:
        clash = _clashes(links)
        for colours in range(enough, int(colour.max()) + 1):
            found = _search(clash, colours, WORK)
            if found[0] >= 0:
                colour = found
                break
    _verify(links, colour)
    return max(enough, int(colour.max()) + 1)


def _verify(links: IntArray, colour: IntArray) -> None:
    """Every flow has a colour, and no link carries two flows of one."""
    used = links >= 0
    pairs = np.stack([links[used], np.broadcast_to(colour[:, None], links.shape)[used]])
    if colour.min() < 0 or np.unique(pairs, axis=1).shape[1] != pairs.shape[1]:
        raise RuntimeError("the colouring of a congested phase is not proper")


@jit
def _parts(links: IntArray) -> IntArray:
    """The connected part of every flow, named by its first flow, shape (flows,)."""
    root = np.arange(len(links))
    first = np.full(links.max() + 1, -1, np.int64)
    for f in range(len(links)):
        for e in links[f]:
            if e < 0:
                continue
            if first[e] < 0:
                first[e] = f
                continue
            a, b = first[e], f
            while root[a] != a:
                root[a] = root[root[a]]
                a = root[a]
            while root[b] != b:
                root[b] = root[root[b]]
                b = root[b]
            root[max(a, b)] = min(a, b)
    for f in range(len(links)):
        root[f] = root[root[f]]  # roots are smaller, so theirs are settled
    return root


@jit
def _first_fit(links: IntArray, order: IntArray) -> IntArray:
    """Every flow in ``order`` gets the first colour that is free on all its links."""
    flows = len(links)
    taken = np.zeros((links.max() + 1, flows), np.bool_)
    colour = np.full(flows, -1, np.int64)
    for f in order:
        c = 0
        while colour[f] < 0:
            free = True
            for e in links[f]:
                if e >= 0 and taken[e, c]:
                    free = False
            if free:
                colour[f] = c
            c += 1
        for e in links[f]:
            if e >= 0:
                taken[e, colour[f]] = True
    return colour


@jit
def _clashes(links: IntArray) -> BoolArray:
    """Which flows share a link, shape (flows, flows)."""
    flows = len(links)
    clash = np.zeros((flows, flows), np.bool_)
    for f in range(flows):
        for g in range(f):
            for a in links[f]:
                for b in links[g]:
                    if a >= 0 and a == b:
                        clash[f, g] = clash[g, f] = True
    return clash


@jit
def _search(clash: BoolArray, colours: int, work: int) -> IntArray:
    """A proper colouring with ``colours``; -1 everywhere when there is none or ``work`` does not suffice."""
    flows = len(clash)
    colour = np.full(flows, -1, np.int64)
    blocked = np.zeros((flows, colours), np.int64)  # neighbours of that colour
    choices = np.full(flows, colours, np.int64)
    degree = clash.sum(axis=1)
    stack, following, opened = np.zeros(flows, np.int64), np.zeros(flows, np.int64), np.zeros(flows, np.int64)
    stack[0] = degree.argmax()
    depth = 0
    while depth >= 0:
        v, c = stack[depth], following[depth]
        if colour[v] >= 0:
            for u in range(flows):
                if clash[v, u]:
                    blocked[u, colour[v]] -= 1
                    choices[u] += blocked[u, colour[v]] == 0
            colour[v] = -1
        most = min(colours, opened[depth] + 1)  # unused colours are alike: only the first is tried
        while c < most and blocked[v, c] > 0:
            c += 1
        work -= flows
        if work < 0:
            return np.full(flows, -1, np.int64)
        if c >= most:
            depth -= 1
            continue
        colour[v], following[depth] = c, c + 1
        for u in range(flows):
            if clash[v, u]:
                choices[u] -= blocked[u, c] == 0
                blocked[u, c] += 1
        if depth == flows - 1:
            return colour
        opened[depth + 1] = max(opened[depth], c + 1)
        depth += 1
        stack[depth], following[depth] = _most_limited(colour, choices, degree), 0
    return np.full(flows, -1, np.int64)


@jit
def _most_limited(colour: IntArray, choices: IntArray, degree: IntArray) -> int:
    """The flow without a colour that has the fewest choices; of several, the first that clashes with most."""
    best = -1
    for u in range(len(colour)):
        if colour[u] < 0 and (
            best < 0 or choices[u] < choices[best] or (choices[u] == choices[best] and degree[u] > degree[best])
        ):
            best = u
    return best
