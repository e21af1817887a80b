"""Latency and bandwidth of a class of links from benchmark times, with intervals, whatever a few samples do.

Model: ``log seconds = log(steps * latency + share * size / bandwidth) + noise``, noise independent and alike for all
samples, so that every sample counts by its relative error. Of series ``bandwidth`` (a stream of messages) the first
term is a time per message of the series' own. Estimator: MM (Yohai 1987): a start that minimises nearly absolute
residuals, their spread (MAD) held, then Tukey's biweight by reweighting, c = 4.685. Intervals: the estimator's
asymptotic covariance with Huber's correction for few samples (Huber 1981, 7.6), and Student's quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import stdtrit  # Student's t, which scipy.stats takes a third of a second to import

from synth.arrays import FloatArray, IntArray
from synth.errors import InputError
from synth.exchange.measurements.series import BANDWIDTH, Algorithm, Series, cost

CUT = 4.685  # of the biweight: 95 % efficient on normal noise
LEVEL = 0.95
ROUNDS = 50
FEW = 2.0  # over the degrees of freedom: what the spread and weights of few samples add (simulated: 6 to 46 sizes)
LEAST_SPREAD = 1e-4  # relative: what printing two digits behind the point loses
LEAST_PART = 0.02  # of a sample's time that a term makes up somewhere, or its parameter is unknown
WIDEST = 30.0  # an interval whose ends differ by more than this factor says nothing


class Interval(NamedTuple):
    """An estimate and the interval that covers the truth in 95 % of logs: ``low <= value <= high``."""

    value: float
    low: float
    high: float


class Residuals(NamedTuple):
    """Of one series: measured over fitted time − 1, shape (samples,); ``weight`` 0 for an outlier, 1 for a sample that
    counts in full; ``alike``: correlation of neighbours by size, near 0 where the model holds."""

    relative: FloatArray
    weight: FloatArray
    alike: float


@dataclass(frozen=True)
class Fit:
    """``latency`` in seconds, ``bandwidth`` in bytes/s, None where the sizes do not tell; ``overheads``: seconds a
    message of every series of streams, by label; ``spread``: relative noise; ``residuals`` a series, in their order."""

    latency: Interval | None
    bandwidth: Interval | None
    overheads: dict[str, Interval]
    spread: float
    residuals: tuple[Residuals, ...]


class _Data(NamedTuple):
    """Samples of all series: logarithm of the seconds; ``first``, ``second``: factors of the parameters ``at`` and
    ``last``; shape (samples,). The parameters are logarithms of times a step and of time a byte."""

    log_s: FloatArray
    first: FloatArray
    second: FloatArray
    at: IntArray
    last: int


def fitted(series: Sequence[Series], algorithm: Algorithm = "ring") -> Fit:
    """Fit one latency and one bandwidth to all samples of the series. Raises :class:`InputError` where the algorithm
    has no formula for a test, or where the samples say nothing of the bandwidth."""
    data, starts = _data(series, algorithm)
    parameters, free = _told(data, _start(data))
    estimate, scale, weight = _robust(data, parameters, free)
    spans = _spans(data, estimate, free, scale)
    relative = np.exp(data.log_s - _predicted(data, estimate)) - 1
    parts = np.split(np.arange(len(data.log_s)), starts[1:])
    residuals = tuple(
        Residuals(relative[part], weight[part], _alike(one.size, relative[part], weight[part]))
        for one, part in zip(series, parts, strict=True)
    )
    streams = [one.label for one in series if one.test == BANDWIDTH]
    found = [_interval(estimate[k], spans[k]) if free[k] else None for k in range(data.last + 1)]
    has_latency = any(one.test != BANDWIDTH for one in series)
    own = found[1 if has_latency else 0 : data.last]
    per_byte = found[data.last]
    bandwidth = None if per_byte is None else Interval(1 / per_byte.value, 1 / per_byte.high, 1 / per_byte.low)
    overheads = {label: one for label, one in zip(streams, own, strict=True) if one is not None}
    return Fit(found[0] if has_latency else None, bandwidth, overheads, scale, residuals)


def first_residuals(series: Series, algorithm: Algorithm = "ring") -> FloatArray:
    """Logarithms of measured over fitted times of the estimator's start, shape (samples,): quick, and hardly moved by
    a few samples. Raises :class:`InputError` as :func:`fitted` does."""
    data, _ = _data([series], algorithm)
    return data.log_s - _predicted(data, _told(data, _start(data))[0])


def _data(series: Sequence[Series], algorithm: Algorithm) -> tuple[_Data, list[int]]:
    """All samples, and where each series begins."""
    next_at = 1 if any(one.test != BANDWIDTH for one in series) else 0
    first, second, at, starts, count = [], [], [], [], 0
    for one in series:
        price = cost(one.test, one.ranks, algorithm)
        if price is None:
            raise InputError(f"no formula for {one.test} by {algorithm}: choose another --algorithm", one.source)
        starts.append(count)
        count += len(one.size)
        first.append(np.full(len(one.size), price.steps))
        second.append(price.share * one.size)
        at.append(np.full(len(one.size), next_at if one.test == BANDWIDTH else 0))
        next_at += one.test == BANDWIDTH
    log_s = np.log(np.concatenate([one.seconds for one in series]))
    return _Data(log_s, np.concatenate(first), np.concatenate(second), np.concatenate(at), next_at), starts


def _start(data: _Data) -> FloatArray:
    """Each term alone at the sizes where it is most of the time."""
    found = np.empty(data.last + 1)
    rates = np.exp(data.log_s) / data.second
    found[-1] = np.log(np.quantile(rates, 0.1))
    for k in range(data.last):
        own = data.at == k
        found[k] = np.log(np.quantile(np.exp(data.log_s[own]) / data.first[own], 0.1))
    return found


def _predicted(data: _Data, parameters: FloatArray) -> FloatArray:
    found: FloatArray = np.logaddexp(np.log(data.first) + parameters[data.at], np.log(data.second) + parameters[-1])
    return found


def _jacobian(data: _Data, parameters: FloatArray) -> FloatArray:
    """Derivatives of the predicted logarithms: the part of the time that each term is, shape (samples, parameters)."""
    predicted = _predicted(data, parameters)
    found = np.zeros((len(predicted), len(parameters)))
    found[np.arange(len(predicted)), data.at] = np.exp(np.log(data.first) + parameters[data.at] - predicted)
    found[:, -1] = np.exp(np.log(data.second) + parameters[-1] - predicted)
    return found


def _solved(data: _Data, parameters: FloatArray, free: Any, weight: FloatArray, **options: Any) -> FloatArray:
    """Least squares over the free parameters from these on."""
    found = parameters.copy()
    root = np.sqrt(weight)

    def residual(values: FloatArray) -> FloatArray:
        found[free] = values
        return root * (data.log_s - _predicted(data, found))

    def slopes(values: FloatArray) -> FloatArray:
        found[free] = values
        return -root[:, None] * _jacobian(data, found)[:, free]

    best = least_squares(residual, parameters[free], slopes, **options)
    found[free] = best.x
    return found


def _told(data: _Data, start: FloatArray) -> tuple[FloatArray, Any]:
    """A first estimate, and which parameters the samples tell anything of, shape (parameters,), bool; the terms of
    the others are nothing."""
    ones = np.ones(len(data.log_s))
    found = _solved(data, start, np.ones(len(start), dtype=bool), ones, loss="soft_l1", f_scale=0.01)
    free = _jacobian(data, found).max(axis=0) >= LEAST_PART
    return np.where(free, found, -np.inf), free


def _robust(data: _Data, start: FloatArray, free: Any) -> tuple[FloatArray, float, FloatArray]:
    """The estimate, the relative spread of the noise and every sample's weight."""
    ones = np.ones(len(data.log_s))
    estimate = _solved(data, start, free, ones, loss="soft_l1", f_scale=0.01)
    residual = data.log_s - _predicted(data, estimate)
    samples, parameters = len(residual), int(np.sum(free))
    largest = np.sort(np.abs(residual))[parameters - 1 if parameters < samples else 0 :]
    scale = max(1.4826 * float(np.median(largest)), LEAST_SPREAD)
    weight = ones
    for _ in range(ROUNDS):
        ratio = np.clip(np.abs(residual) / (CUT * scale), 0, 1)
        weight = (1 - ratio**2) ** 2
        if np.sum(weight > 0) <= parameters:  # hardly ever: then nearly absolute residuals decide
            return estimate, scale, ones
        better = _solved(data, estimate, free, weight)
        moved = float(np.max(np.abs(better[free] - estimate[free])))
        estimate, residual = better, data.log_s - _predicted(data, better)
        if moved < 1e-9:
            break
    return estimate, scale, weight


def _spans(data: _Data, estimate: FloatArray, free: Any, scale: float) -> FloatArray:
    """Half the width of every parameter's interval, in logarithms, shape (parameters,)."""
    slopes = _jacobian(data, estimate)[:, free]
    ratio = (data.log_s - _predicted(data, estimate)) / (CUT * scale)
    inside = np.abs(ratio) < 1
    score = np.where(inside, CUT * ratio * (1 - ratio**2) ** 2, 0)
    slope = np.where(inside, (1 - ratio**2) * (1 - 5 * ratio**2), 0)
    samples, parameters = len(ratio), slopes.shape[1]
    mean = max(float(slope.mean()), 0.1)
    correction = 1 + parameters / samples * float(slope.var()) / mean**2
    freedom = max(int(inside.sum()) - parameters, 1)
    few = 1 + FEW / freedom
    variance = few * (correction * scale / mean) ** 2 * float(np.sum(score**2)) / freedom
    covariance = variance * np.linalg.pinv(slopes.T @ slopes)
    spans = np.full(len(estimate), np.inf)
    spans[free] = np.sqrt(np.diag(covariance)) * stdtrit(freedom, (1 + LEVEL) / 2)
    return spans


def _interval(log_value: float, span: float) -> Interval | None:
    """The interval on the scale of the parameter; None where it says nothing."""
    if not span <= np.log(WIDEST) / 2:
        return None
    return Interval(*(float(np.exp(log_value + sign * span)) for sign in (0, -1, 1)))


def _alike(size: IntArray, relative: FloatArray, weight: FloatArray) -> float:
    """Correlation of residuals that are neighbours by size, outliers left out; 0 for few."""
    kept = relative[np.argsort(size, kind="stable")][weight[np.argsort(size, kind="stable")] > 0]
    if len(kept) < 6:
        return 0.0
    kept = kept - kept.mean()
    total = float(np.sum(kept**2))
    return float(np.sum(kept[1:] * kept[:-1])) / total if total > 0 else 0.0
