"""Studies: many runs turned into one table, statistics, figures and a report."""

from synth.study.plan import Study, load

__all__ = ["Study", "load"]
