"""Whatever a file or an array holds: a verdict or a message, never a crash, never a guess."""

from __future__ import annotations

import io
import random
from dataclasses import fields, replace

import numpy as np
import pytest
from examples import some_of
from exchange.small_algorithms import SMALL

from synth.errors import InputError
from synth.exchange import executors, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.moves_from_algorithm import raised
from synth.exchange.msccl_xml import lines, read_stream

ODD = (-(2**62), -(2**31), -2, -1, 0, 1, 2, 3, 7, 64, 2**15, 2**31 - 1, 2**31, 2**62)


def read(data: bytes) -> Algorithm:
    return read_stream(io.BytesIO(data), "a.xml").algorithm


def judged(algorithm: Algorithm) -> bool:
    """Whether it is valid; everything that takes an algorithm is called."""
    try:
        valid = validity.check(algorithm).ok
    except InputError:
        return False
    for name in executors.EXECUTORS:
        if valid:
            executors.faults(name, algorithm)
    if valid:
        "".join(lines(algorithm))
        raised(algorithm, algorithm.chunks)
    return valid


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", some_of(SMALL))
def test_odd_numbers_in_any_array(name: str) -> None:
    chance = random.Random(name)
    plain = read(SMALL[name].encode())
    arrays = [field.name for field in fields(Algorithm) if isinstance(getattr(plain, field.name), np.ndarray)]
    arrays = [key for key in arrays if key not in ("step_start", "tb_rank", "line", "has_dependents")]
    for key in arrays:
        for value in ODD:
            changed = getattr(plain, key).copy()
            changed.flat[chance.randrange(changed.size)] = value
            judged(replace(plain, **{key: changed}))
    for key in ("ranks", "chunks", "root"):
        for odd in (*ODD, None):
            if odd is not None or key == "root":
                judged(replace(plain, **{key: odd}))
    judged(replace(plain, collective="gossip"))


@pytest.mark.parametrize("name", ["allgather-two-blocks", "reduce-out", "allreduce-ring"])
def test_files_with_bytes_changed(name: str) -> None:
    chance = random.Random(name)
    text = SMALL[name].encode()
    for _ in range(600):
        data = bytearray(text)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 40)]
                case 2:
                    data[at:at] = data[chance.randrange(len(data)) :][: chance.randrange(1, 60)]
                case 3:
                    data[at] = ord(chance.choice('0123456789-"<>/= '))
        try:
            judged(read(bytes(data)))
        except InputError:
            continue


def test_algorithms_of_nobody_and_of_one() -> None:
    """One rank: in place there is nothing to do, out of place it copies its own part."""
    from exchange.small_algorithms import xml

    assert judged(read(xml("allreduce", 1, 1, True, "gpu 0 1 1 0").encode()))
    assert not judged(read(xml("allreduce", 1, 1, False, "gpu 0 1 1 0").encode()))
    assert judged(read(xml("allreduce", 1, 1, False, "gpu 0 1 1 0\ntb -1 -1 0: cpy i0 >o0").encode()))
    assert not judged(read(xml("allgather", 2, 2, True, "gpu 0 1 2 0\ngpu 1 1 2 0").encode()))
