"""OpTree's stages for any number of nodes: how they are laid out, and the exact wavelengths each stage needs.

**Layout.** Subgroup sizes ``s_1, s_2, .., s_k = 1`` with ``s_(j-1) = m_j * s_j``; the ring is cut into
``m_1 = ceil(N/s_1)`` groups of ``s_1`` consecutive nodes, the last one possibly smaller. Stage ``j >= 2`` splits
every group of ``m_j * s_j`` positions into ``m_j`` subgroups. Before it, the node at position ``a`` of its group holds
the items of all nodes ``x`` with ``x mod (m_j s_j) = a``; the stage sends each item from its position ``(d, p)``
(subgroup d, place p) to place ``p`` of all other subgroups of the same group. Only the last group on the ring can have
fewer than ``m_j s_j`` nodes, say ``r``: there every position beyond the last node is *clamped* to the last node.

**Stages on segments** (``j >= 2``). Circuits stay inside their group, so a stage is a set of interval graphs, one per
group and direction, and needs exactly as many wavelengths as circuits cross the busiest link. With ``n[d,p]`` items at
position ``(d, p)`` and ``P_i[p] = n[0,p] + .. + n[i-1,p]``, the clockwise load where ``y`` places of subgroup ``i``
lie before the cut is ``sum_{p<y} P_(i+1)[p] (m-i-1) + sum_{p>=y} P_i[p] (m-i)``. The counts ``n`` take two values,
``floor`` and ``ceil`` of ``N/(m s)``, with ``N mod (m s) = D s + q`` positions of the larger; so ``P_i`` is the same
for all ``p < q`` and for all ``p >= q``, the load is linear in ``y`` between 0, ``q`` and ``s``, and the maximum is at
one of them. Clamping contracts the links between the last node and the missing positions: no load on the other links
grows, and circuits between clamped positions vanish. So the last group needs no more than a full one.
For ``n = c`` everywhere the maximum is the paper's ``floor(m^2/4) * s * c``.

**Stage 1** is an all-to-all of ``m`` groups round the ring, once for each of ``s`` places. One place is an all-to-all
of ``m`` nodes on a ring; spacing does not matter. Let ``h = floor(m/2)`` and pair the nodes ``x, x'`` that are ``h``
apart (for odd ``m`` after leaving out one node ``z``). Two pairs alternate round the ring, so ``x->y->x'->y'->x`` is
one full circle: one wavelength clockwise and its reverse one counterclockwise, ``h(h-1)/2`` each. For odd ``m``,
``z->x->x'->z`` and its reverse are circles too: ``h`` more of each. For even ``m``, ``x->x'->x`` is a circle in one
direction only, and the ``s*h`` circles of all places are dealt to both directions evenly. Sum, for each direction:
``ceil(s * floor(m^2/4) / 2)``. Nothing needs less on equal groups: the shortest ways of an all-to-all are
``m * floor(m^2/4)`` hops for ``2m`` links. The paper's ``ceil(m^2/8)`` per place is this for ``m`` divisible by 4, and
one too many for every odd ``m``.

All items a node sends in a stage were gathered in earlier ones, so a stage of ``W`` wavelengths takes ``ceil(W/w)``
steps. Every circuit of stage 1 has at most ``floor(m/2) * s_1`` hops, of stage ``j`` at most ``(m_j - 1) * s_j``.
"""

from __future__ import annotations

from synth.kernels import jit


@jit
def ring_wavelengths(radix: int, size: int) -> int:
    """Wavelengths per direction of stage 1: all-to-all of ``radix`` groups for each of ``size`` places."""
    return (size * (radix * radix // 4) + 1) // 2


@jit
def segment_wavelengths(nodes: int, radix: int, size: int) -> int:
    """Wavelengths per direction of a later stage: groups of ``radix * size`` positions, ``nodes`` items in each. O(1).

    The loads are concave quadratics in the subgroup ``i`` on both sides of ``D`` (see the module), so only the
    subgroups next to their vertices and next to ``D`` are looked at.
    """
    whole, rest = nodes // (radix * size), nodes % (radix * size)
    more, places = rest // size, rest % size
    most = 0
    for base in (radix // 2, more, _vertex(nodes, radix, size, whole)):
        for i in range(max(0, base - 2), min(radix - 1, base + 2) + 1):
            for y in (0, places):
                most = max(most, _load(radix, size, whole, more, places, i, y, False))
                most = max(most, _load(radix, size, whole, more, places, i, y, True))
    return most


@jit
def _vertex(nodes: int, radix: int, size: int, whole: int) -> int:
    """Where ``(i * whole + rest/size) * (radix - i)``, the load beyond the larger counts, has its vertex."""
    if whole == 0:
        return radix // 2
    return (2 * whole * radix * size - nodes) // (2 * whole * size)


@jit
def _load(radix: int, size: int, whole: int, more: int, places: int, i: int, y: int, reverse: bool) -> int:
    """Circuits over the link where ``y`` places of subgroup ``i`` lie before the cut; ``y`` is 0 or ``places``."""
    total = radix * size * whole + more * size + places
    low_i = whole * i + min(i, more)  # P_i[p] for p >= places
    low_next = whole * (i + 1) + min(i + 1, more)
    high_i = low_i + (1 if more < i else 0)  # P_i[p] for p < places
    high_next = low_next + (1 if more < i + 1 else 0)
    if y == 0:
        before_all = low_i * (size - places) + high_i * places
        if reverse:
            return (total - before_all) * i
        return before_all * (radix - i)
    before_below, before_above = high_next * y, low_i * (size - y)
    if reverse:
        column_high = whole * radix + more + 1  # items at a place p < places, over all subgroups
        column_low = whole * radix + more
        return (column_high * y - before_below) * (i + 1) + (column_low * (size - y) - before_above) * i
    return before_below * (radix - i - 1) + before_above * (radix - i)


def longest_hops(nodes: int, radices: tuple[int, ...]) -> int:
    """Most hops of any circuit of the plan, at most N-1."""
    size = 1
    longest = 0
    for radix in reversed(radices[1:]):
        longest = max(longest, (radix - 1) * size)
        size *= radix
    return min(nodes - 1, max(longest, (radices[0] // 2) * size))
