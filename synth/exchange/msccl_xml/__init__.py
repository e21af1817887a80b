"""MSCCL XML, in and out: ``algo > gpu > tb > step`` to :class:`synth.exchange.algorithm.Algorithm` and back.

Source: the parsers of Azure/msccl-executor-nccl (src/misc/msccl/msccl_parser.cc) and microsoft/msccl; the order of
attributes is that of msccl-tools' files. ``nchunksperloop`` counts the chunks of the whole buffer where an executor
multiplies the size by the number of ranks (allgather, reduce_scatter, alltoall), of one part otherwise. No file says
its root; ours do in an attribute ``root``, which executors do not look at, and without one it is rank 0.

A file is hostile until it is read: no DTD, no entities, UTF-8, bounded size, depth, tags and numbers; it is read as a
stream, and everything wrong with it is reported at once, with its line.
"""

from synth.exchange.msccl_xml.reader import PROTOCOLS, MscclFile, read, read_stream
from synth.exchange.msccl_xml.writer import lines, plain, write, write_stream

__all__ = ["PROTOCOLS", "MscclFile", "lines", "plain", "read", "read_stream", "write", "write_stream"]
