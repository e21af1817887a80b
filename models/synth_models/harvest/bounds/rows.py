"""The inequalities of the interval relaxation, each valid for every topology of degree ``ports``.

Fix a topology and average over the renumberings that keep all patterns. For an orbit ``o`` of pairs let ``a[o]`` be the
mean hop distance, for a pattern ``k`` let ``L[k]`` be the longest route and ``u[k]`` the largest unit load of a step
with it (n GPUs, d ports, ``|o|`` the volume of all pairs of o in k). Rows, all of the form ``coefficients . variables
>= right side``:

* **longest**: ``L[k] >= a[o]`` for o in k.
* **volume**: ``d*n*u[k] >= sum over o in k of |o|*a[o]``: a volume loads its distance at least, d*n links share it.
* **tree**: take a tree of distinct GPUs rooted at r whose arcs are pairs of patterns. By the triangle inequality its
  paths bound distances from r; at most d^h GPUs are h hops away (Moore), so the path lengths sum to at least the sum of
  the j smallest places. Likewise for trees into r.
* **cycle** (one port): the topology is a union of cycles (joining the ends of a path changes no route), a weakly
  connected set of pairs lies on one of them, and a closed walk is at least as long as that cycle.
* **rate**: prices ``p[k] >= 0`` on ordered pairs of GPUs with ``sum over k of p[k][u,v] <= r[u] + c[v]``. A flow of k
  pays at least ``D[k]``, the sum of volume times cheapest path over its pairs, and the topology holds at most
  ``u[k]*x`` of it, hence ``sum of D[k]/u[k] <= d*(sum of r and c)``. It is convex in u; the row is its tangent at the
  rates ``rho[k]``: ``sum D[k]*rho[k]^2*u[k] >= 2*sum D[k]*rho[k] - d*(sum of r and c)``. Rates are stated for the
  pattern's largest volume V[k]: ``rho[k]*V[k]``, in units of ``1/RATE_SCALE``.

* **direct**: with one hop a step's pairs have links of their own, so its load is at least U[k], the least volume a link
  with which whole links fit into the ports; with two hops or more at least ``d0``, see below. Both satisfy
  ``(U[k] - d0)*L[k] + u[k] >= 2*U[k] - d0``. For patterns whose steps all have the same bytes, as these may take one
  and the same routes.

* **limit**: ``a[o] <= h`` for o in k, in a case in which routes of k have at most h hops.

In a **case** the routes of some patterns have at least ``low`` and at most ``high`` hops (:mod:`.hop_cases`). Then D[k]
counts paths of at most ``high`` hops. A pattern with one hop has all its pairs' links, so every such pair ``(u, v)``
takes ``r[u] + c[v] - sum of p[u,v]`` off ``d*(sum of r and c)``: its link is paid for at its prices only.

Beside them stand the lower bounds ``a >= 1``, ``u[k] >= d0``, the least load that whole links allow
(:func:`synth_models.harvest.parts.demands.routed_load`; the largest volume at one GPU / d, or more) and, for L[k], the
fewest hops h within which every GPU of k reaches its partners: no more than d + d^2 + … + d^h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

RATE_SCALE = 1 << 20  # rates are whole multiples of 1/RATE_SCALE


@dataclass(frozen=True)
class Row:
    """``coefficient`` by variable: ("a", orbit), ("L", pattern), ("u", pattern); ``words`` is the certificate's entry,
    from which the check derives the row again."""

    coefficient: dict[tuple[str, int], int | Fraction]
    right: int | Fraction
    words: dict[str, Any] = field(compare=False)


def moore_places(ports: int, most: int) -> list[int]:
    """Smallest possible distances of 1, 2, … ``most`` other GPUs from one GPU, summed up: entry j for j of them."""
    sums, distance, left = [0], 0, 0
    width = 1
    for _ in range(most):
        if left == 0:
            distance, width = distance + 1, width * ports
            left = width
        sums.append(sums[-1] + distance)
        left -= 1
    return sums


def longest(pattern: int, orbit: int) -> Row:
    return Row({("L", pattern): 1, ("a", orbit): -1}, 0, {"row": "longest", "pattern": pattern, "orbit": orbit})


def volume(pattern: int, sizes: dict[int, int], links: int) -> Row:
    """``sizes``: volume of the pattern by orbit; ``links`` = ports * GPUs."""
    coefficient: dict[tuple[str, int], int | Fraction] = {("a", orbit): -size for orbit, size in sizes.items()}
    return Row({("u", pattern): links, **coefficient}, 0, {"row": "volume", "pattern": pattern})


def tree(uses: dict[int, int], right: int, inwards: bool, nodes: list[int], parents: list[int]) -> Row:
    """``uses``: how many root paths go through pairs of each orbit; ``parents`` index ``nodes``, the root first."""
    words = {"row": "tree", "inwards": inwards, "nodes": nodes, "parents": parents}
    return Row({("a", orbit): count for orbit, count in uses.items()}, right, words)


def direct(pattern: int, load: Fraction, least: Fraction) -> Row:
    """``load``: least volume a link with one hop; ``least``: that of any routes."""
    coefficient: dict[tuple[str, int], int | Fraction] = {("L", pattern): load - least, ("u", pattern): 1}
    return Row(coefficient, 2 * load - least, {"row": "direct", "pattern": pattern})


def limit(pattern: int, orbit: int, hops: int) -> Row:
    return Row({("a", orbit): -1}, -hops, {"row": "limit", "pattern": pattern, "orbit": orbit})


def cycle(uses: dict[int, int], right: int, nodes: list[int]) -> Row:
    return Row({("a", orbit): count for orbit, count in uses.items()}, right, {"row": "cycle", "nodes": nodes})


def rate(cheapest: dict[int, int], budget: int, rates: dict[int, int], bundle: int, largest: dict[int, int]) -> Row:
    """``cheapest``: D by pattern; ``budget``: d * (sum of r and c); ``rates`` of the ``largest`` volumes, in units of
    1/RATE_SCALE."""
    of_one = {k: Fraction(rates[k], largest[k]) for k in cheapest}
    coefficient: dict[tuple[str, int], int | Fraction] = {
        ("u", k): total * of_one[k] ** 2 for k, total in cheapest.items()
    }
    right = 2 * RATE_SCALE * sum(total * of_one[k] for k, total in cheapest.items()) - RATE_SCALE**2 * budget
    rated = [[k, rates[k]] for k in sorted(cheapest)]
    return Row(coefficient, right, {"row": "rate", "bundle": bundle, "rates": rated})
