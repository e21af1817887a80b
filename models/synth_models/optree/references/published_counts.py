"""Methods ``formula``, ``ring``, ``neighbor_exchange``, ``wrht``, ``one_stage`` (references): published step counts.

Dai, Chen, Huang, Zhang, Table 1, with these corrections. Lemma 3's bracket rounds up in their numbers, which picks
k = 8 with 156 steps at N = 2048 where k = 7 takes 155, and k = 3 at N = 16 where their example (and the formula) has
k = 2: here the depth is the one with the fewest steps, the smallest of several. Their table prints 128 one-stage steps
at N = 1024, w = 64 where the formula gives 2048. Neighbor exchange sends two items per exchange, which with a single
wavelength takes two steps.

The methods hand over which count is meant (:class:`StepCount`); the check evaluates it. These are counts, not
schedules: WRHT's drops below proven bounds where ``N <= 2w + 1`` (one step), and below what its own routing takes
(``wrht_schedule.py``). With ``circuits`` three of them make the schedule, whose steps the check replays.
"""

from __future__ import annotations

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_explicit_size, require_hops, require_ring
from synth_models.optree.references.published_schedules import exchange_circuits, ring_circuits
from synth_models.optree.references.wrht_schedule import wrht_circuits
from synth_models.optree.solution import StepCount


def root_up(number: int, degree: int) -> int:
    """The least whole ``r`` with ``r^degree >= number`` (both >= 1), by Newton's iteration in whole numbers.

    Exact for numbers of any size, where a float power errs by one near every whole result.
    """
    root = 1 << -(-number.bit_length() // degree)  # above the real root; the iteration falls to its floor
    while True:
        below = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if below >= root:
            break
        root = below
    return root if root**degree >= number else root + 1


def formula_steps(nodes: int, wavelengths: int, depth: int) -> int:
    """Theorem 1, ``ceil((2k-1) * N^(1+1/k) / (8w))`` for ``depth`` k >= 2, in whole numbers; for depth 1 the one-stage
    count ``ceil(ceil(N^2/8) / w)``.

    ``8wS >= (2k-1) * N^(1+1/k)`` has a whole number on its left, so the right may be rounded up first.
    """
    if depth == 1:
        return one_stage_steps(nodes, wavelengths)
    work = root_up((2 * depth - 1) ** depth * nodes ** (depth + 1), depth)
    return -(-work // (8 * wavelengths))


def formula_hops(nodes: int, depth: int) -> int:
    """Hops of the longest circuit at ``depth`` k: one less than the interfaces of the paper's path (its Eq. 4),
    ``L = 1 + (N^(1/k)-1) * N^(1-1/k)``, that is ``N - N^(1-1/k)``, rounded up; for depth 1 ``floor(N/2)``.

    The reading: N^(1/k) stays the real number it is in the formula for the steps (a radix rounded to a whole number
    would describe another plan than the one that is counted). A circuit has a whole number of hops, and a budget that
    does not cover the next whole number covers no circuit as long as L; so L is rounded up, never to the nearest.
    """
    if depth == 1:
        return nodes // 2
    within = root_up(nodes ** (depth - 1) + 1, depth) - 1  # floor of N^(1-1/k)
    return nodes - within


def best_depths(nodes: int, wavelengths: int) -> tuple[int, list[int]]:
    """The fewest steps of Theorem 1 over all depths, and every depth that has them, ascending.

    Beyond ``2 * log2(N)`` the count only grows (its derivative is positive beyond Lemma 3's root, below ln N).
    """
    depths = range(1, 2 * nodes.bit_length() + 2)
    steps = {depth: formula_steps(nodes, wavelengths, depth) for depth in depths}
    fewest = min(steps.values())
    return fewest, [depth for depth in depths if steps[depth] == fewest]


def one_stage_steps(nodes: int, wavelengths: int) -> int:
    """``ceil(ceil(N^2/8) / w)``."""
    circles = (nodes * nodes + 7) // 8
    return -(-circles // wavelengths)


def wrht_hops(nodes: int, wavelengths: int) -> int:
    """Hops of WRHT's longest circuit: representatives of one level stand ``spacing`` nodes apart, groups of ``2w + 1``
    gather at their middle, and the top level goes round the ring."""
    group, spacing = 2 * wavelengths + 1, 1
    while spacing * group < nodes:
        spacing *= group
    top = (-(-nodes // spacing) // 2) * spacing
    below = wavelengths * (spacing // group)
    return min(nodes // 2, max(top, below, 1))


def solve_formula(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``formula``: Theorem 1 at the given or the best depth."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "a published count")
    depth = options.method.get("depth")
    message = None
    if depth is None:
        steps, depths = best_depths(instance.nodes, instance.wavelengths)
        depth, message = depths[0], f"{steps} steps at depth {', '.join(map(str, depths))}"
    require_hops(instance, formula_hops(instance.nodes, depth), f"OpTree at depth {depth}")
    return Outcome("finished", solution=StepCount("formula", (depth,)), message=message)


def solve_ring(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``ring``: ``N - 1`` steps, one hop each; with ``circuits`` the schedule itself."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "a published count")
    if options.method.get("circuits"):
        require_explicit_size(instance)
        return Outcome("finished", solution=ring_circuits(instance.nodes))
    return Outcome("finished", solution=StepCount("ring"))


def solve_neighbor_exchange(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``neighbor_exchange``: ``N/2`` steps for even N, one hop each; with ``circuits`` the schedule itself."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "a published count")
    if instance.nodes % 2:
        raise UnsupportedError(f"neighbor exchange pairs the nodes up: {instance.nodes} is odd")
    if options.method.get("circuits"):
        require_explicit_size(instance)
        return Outcome("finished", solution=exchange_circuits(instance.nodes, instance.wavelengths))
    return Outcome("finished", solution=StepCount("neighbor_exchange"))


def solve_wrht(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``wrht``: ``1 + ceil((M^t - M)/(M-1)) + (t-1) M^(t-1)`` (variant 2: ``t M^(t-1)``), ``M = 2w+1``; with
    ``circuits`` its routing as a schedule, which takes more steps."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "a published count")
    variant = int(options.method.get("variant", 1))
    if options.method.get("circuits"):
        require_explicit_size(instance)
        circuits, stages = wrht_circuits(instance.nodes, instance.wavelengths, variant)
        require_hops(instance, int(circuits.hops(instance).max()), "WRHT")
        message = f"collect {stages.collect}, exchange {stages.exchange}, broadcast {stages.broadcast} steps"
        return Outcome("finished", solution=circuits, message=message)
    require_hops(instance, wrht_hops(instance.nodes, instance.wavelengths), "WRHT")
    return Outcome("finished", solution=StepCount("wrht", (variant,)))


def solve_one_stage(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``one_stage``: ``ceil(ceil(N^2/8) / w)`` steps, circuits up to ``floor(N/2)`` hops."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "a published count")
    require_hops(instance, instance.nodes // 2, "one stage")
    return Outcome("finished", solution=StepCount("one_stage"))
