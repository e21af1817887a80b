"""Chakra execution traces: the schedule as one file a rank that ASTRA-sim replays as a custom collective.

The files are ``PREFIX.<rank>.et``. A transfer is a COMM_SEND_NODE in the sender's file and a COMM_RECV_NODE in the
receiver's; where the receiver adds, a COMP_NODE stands behind the receive (without a duration, which ASTRA-sim takes
for 1 ns). A send depends on the node that made what it sends; a COMP_NODE depends on its receive and on the node that
made the sum before it. Sends from one rank to another keep the schedule's order: where a link that serves first come,
first served could take a later one first, that one depends on a COMP_NODE called ``order`` that ends 1 ns after the
earlier one was issued (:mod:`synth.exchange.chakra.link_order`). A send that the schedule holds back, though its data
are there and its link is idle, depends on the last receive of its rank before (:mod:`synth.exchange.chakra.held_back`).
``comm_tag`` is the number of the piece, and where one pair exchanges a piece again, the number of pieces more.

What ASTRA-sim (518bd51) asks for, by reading ``CustomAlgorithm.cc`` and ``Sys.cc``: ``comm_size`` in bytes and above 0,
tags below 500,000,000, dependences in ``data_deps`` and within one file, and at least one node in every file (an idle
rank has a COMP_NODE that does nothing).

What the pieces are stands in the metadata (the table of pieces in rank 0's only), from which :func:`read` gives the
transfers back; a trace of others has no such table, its nodes can be checked but no collective replayed.
"""

from synth.exchange.chakra.check import faults
from synth.exchange.chakra.reader import read
from synth.exchange.chakra.schedule import transfers
from synth.exchange.chakra.writer import system_lines, write, write_example

__all__ = ["faults", "read", "system_lines", "transfers", "write", "write_example"]
