"""Step 7: the printed numbers beside ours, for ``synth reproduce toy_broadcast``."""

from __future__ import annotations

import synth
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction

PRINTED = printed.read(__file__)


def reproduce(page: Reproduction) -> None:
    """Eight nodes take three rounds."""
    instance = page.keep(synth.make("toy_broadcast", nodes=8), "made")
    [(_, record)] = page.solve([instance], ["doubling"], part="made")
    page.compare(PRINTED["folklore"], record.value)
