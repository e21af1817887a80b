"""Logs of communication benchmarks: read into series of sizes and times, fitted to latencies and bandwidths."""

from synth.exchange.measurements.fitting import Fit, Interval, fitted
from synth.exchange.measurements.logs import read
from synth.exchange.measurements.series import Series

__all__ = ["Fit", "Interval", "Series", "fitted", "read"]
