"""Studies: many runs turned into one table, statistics, figures and a report."""

from synth.study.definition import PreparedStudy, Study, load

__all__ = ["PreparedStudy", "Study", "load"]
