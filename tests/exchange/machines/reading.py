"""What the tests of the topology formats share: the samples, a machine as plain facts, the faults of a broken text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from synth.errors import InputError
from synth.exchange.machines.formats import read, read_text
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str, hints: Hints = NO_HINTS) -> Machine:
    """A sample, its format told by its content."""
    return read(SAMPLES / name, hints=hints)


def text_of(name: str) -> str:
    """A sample's text."""
    return (SAMPLES / name).read_text()


def links_of(machine: Machine) -> Counter[tuple[str, str, float | None, float | None]]:
    """Every link by the names of its ends, bandwidth and latency; parallel ones are counted."""
    names = machine.names
    return Counter((names[e.src], names[e.dst], e.bandwidth, e.latency) for e in machine.links)


def both_ways(
    *links: tuple[str, str, float | None, float | None],
) -> Counter[tuple[str, str, float | None, float | None]]:
    """Links in both directions."""
    return Counter([*links, *((v, u, *numbers) for u, v, *numbers in links)])


def refused(text: str, file_name: str = "broken.txt", format_name: str | None = None, hints: Hints = NO_HINTS) -> str:
    """What is said of a text that is refused; the file is named in every line."""
    with pytest.raises(InputError) as caught:
        read_text(text, file_name, format_name, hints)
    message = str(caught.value)
    assert all(line.startswith(f"{file_name}: ") for line in message.splitlines()), message
    return message
