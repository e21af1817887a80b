"""Schedules in rounds of messages, for whoever has only sends, receives and sums: the form of ``synth.torch``."""

from __future__ import annotations

from synth.exchange.rounds.check import demand_right
from synth.exchange.rounds.file import FORMAT, read, write
from synth.exchange.rounds.folder import Entry, Table, read_table, write_table
from synth.exchange.rounds.joined import joined
from synth.exchange.rounds.plan import Rounds, in_rounds

__all__ = [
    "FORMAT", "Entry", "Rounds", "Table", "demand_right", "in_rounds", "joined", "read", "read_table", "write",
    "write_table",
]  # fmt: skip
