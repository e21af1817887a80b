"""The time of a run: its limit, what no limit counts, and what was known when."""
