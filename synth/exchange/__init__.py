"""Formats in and out: schedules that run elsewhere, machines and algorithms that come in.

A recorded schedule becomes :class:`synth.exchange.transfers.Transfers` (what its family says of it), that becomes an
:class:`synth.exchange.algorithm.Algorithm` (rank, thread block, step), and one module per format reads and writes it.
"""
