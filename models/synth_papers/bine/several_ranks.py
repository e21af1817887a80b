"""Section 6.1 and 6.2 on the trace: what several ranks a node do to the global traffic of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synth.errors import UnsupportedError
from synth_models.bine.making import ranks_on_nodes
from synth_models.bine.references import hierarchical
from synth_papers.bine.traffic import global_traffic, pair_volumes

LOCALS = (1, 2, 4, 8)
ORDERS = ("block", "round_robin")
MOST_NODES = 64  # of an alltoall's jobs, which has p^2 messages
FORMS = (
    ("allreduce", "large"),
    ("allreduce", "small"),
    ("allgather", "large"),
    ("reduce_scatter", "large"),
    ("alltoall", "large"),
    ("broadcast", "small"),
    ("scatter", "small"),
)
METHODS = ("hierarchical", "bine", "recursive", "ring", "bruck", "binomial_halving", "binomial_doubling")

LEAST = "least possible"


def traffic_by_ranks(allocations: Sequence[npt.NDArray[Any]]) -> pd.DataFrame:
    """Mean bytes on global links per byte of the vector over the jobs, whose nodes ``allocations`` name; a row a
    collective and algorithm, a column for every number of ranks a node and order of ranks (``2`` block, ``2 rr`` round
    robin). Alltoall: jobs of at most 64 nodes."""
    rows = []
    for collective, vector in FORMS:
        jobs = [a for a in allocations if collective != "alltoall" or len(a) <= MOST_NODES]
        for method in METHODS:
            try:
                found = {
                    _column(local, order): _mean(jobs, method, collective, vector, local, order)
                    for local in LOCALS
                    for order in (ORDERS if local > 1 else ORDERS[:1])
                }
            except UnsupportedError:
                continue
            finally:
                pair_volumes.cache_clear()  # of no use to the next one
            rows.append({"collective": f"{collective} ({vector})", "algorithm": method, "jobs": len(jobs)} | found)
        least = {
            _column(local, order): float(np.mean([least_traffic(np.repeat(job, local), collective) for job in jobs]))
            for local in LOCALS
            for order in (ORDERS if local > 1 else ORDERS[:1])
        }  # which node a rank lies on matters, which number it has does not
        rows.append({"collective": f"{collective} ({vector})", "algorithm": LEAST, "jobs": len(jobs)} | least)
    return pd.DataFrame(rows)


def least_traffic(groups: npt.NDArray[Any], collective: str) -> float:
    """Bytes on global links per byte of the vector that no algorithm falls below, in as many rounds as it likes, and
    that ``leaders`` (alltoall: ``ring``) meets: the receive count, ``bounds/global_bytes.py``. ``groups`` has shape
    (ranks,), rank 0 is the root."""
    share = np.unique(groups, return_counts=True)[1] / len(groups)
    match collective:
        case "scatter" | "gather":
            return float(1 - np.mean(groups == groups[0]))
        case "alltoall":
            return float(len(groups) * (1 - (share**2).sum()))
        case "allreduce":
            return 2.0 * (len(share) - 1)
    return float(len(share) - 1)


def _column(local: int, order: str) -> str:
    return f"{local}" + (" rr" if order == "round_robin" else "")


def _mean(jobs: Sequence[npt.NDArray[Any]], method: str, collective: str, vector: str, local: int, order: str) -> float:
    """The mean over jobs; jobs of one number of nodes have the same order of ranks."""
    if method in ("hierarchical", "ring") and (collective, vector) == ("allreduce", "small"):
        raise UnsupportedError(f"{method} has no small allreduce")
    if method == "hierarchical" and collective not in hierarchical.HALVES:
        raise UnsupportedError(f"hierarchical has no {collective}")
    total = 0.0
    for size in sorted({len(job) for job in jobs}):
        nodes = np.array(ranks_on_nodes([local] * size, order))
        spread = [job[nodes] for job in jobs if len(job) == size]
        own = {"nodes": tuple(nodes.tolist())} if method == "hierarchical" else {}
        total += float(global_traffic(spread, method, collective, vector, own=own).sum())
    return total / len(jobs)
