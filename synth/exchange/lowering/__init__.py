"""From moves of pieces (:class:`synth.exchange.transfers.Transfers`) to thread blocks and steps
(:class:`synth.exchange.algorithm.Algorithm`).

``chunking`` cuts pieces into chunks, ``buffers`` says where a piece lies at a rank, ``moving`` plays the moves one
after the other and writes down what every rank does, ``joining`` makes one step of pieces that move side by side,
``channels`` gives every step a thread block, ``fusing`` makes one step of a receive and the send that follows it, and
``ordering`` puts in the dependences that are needed.
"""

from synth.exchange.lowering.equal_chunks import in_chunks
from synth.exchange.lowering.limits import Limits, limits_of
from synth.exchange.lowering.lower import Wish, lower, with_idle

__all__ = ["Limits", "Wish", "in_chunks", "limits_of", "lower", "with_idle"]
