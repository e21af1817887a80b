"""Small algorithms with copies put in at random, most of them of a cell onto itself by any two of its names."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET

from exchange.interpreter import Machine

ITSELF = 0.75  # share of copies onto themselves


def with_copies(text: str, chance: random.Random) -> tuple[str, bool]:
    """The file with one to three copies more, in thread blocks that are there or in new ones, with a dependence or
    without; and whether each of them is one of a cell onto itself. Buffers are declared in full."""
    machine, root = Machine(text), ET.fromstring(text)
    every = True
    for gpu in root:
        for buffer, size in machine.sizes(int(gpu.get("id", ""))).items():
            gpu.set(f"{buffer}_chunks", str(size))
    for _ in range(chance.randint(1, 3)):
        gpu = chance.choice(list(root))
        rank = int(gpu.get("id", ""))
        names = [(buffer, k) for buffer, size in machine.sizes(rank).items() for k in range(size)]
        src = chance.choice(names)
        same = [name for name in names if machine.where(rank, *name) == machine.where(rank, *src)]
        dst = chance.choice(same if chance.random() < ITSELF else names)
        every &= dst in same
        block = chance.choice([None, *gpu])
        if block is None:
            block = ET.SubElement(gpu, "tb", {"id": str(len(gpu)), "send": "-1", "recv": "-1", "chan": "0"})
        at = chance.randint(0, len(block))
        for step in gpu.iter("step"):  # those named by their places move up
            if step.get("depid") == block.get("id") and int(step.get("deps", "")) >= at:
                step.set("deps", str(int(step.get("deps", "")) + 1))
        copy = {
            "s": "0", "type": "cpy", "srcbuf": src[0], "srcoff": str(src[1]), "dstbuf": dst[0], "dstoff": str(dst[1]),
            "cnt": "1", "depid": "-1", "deps": "-1", "hasdep": "0",
        }  # fmt: skip
        _depend(copy, gpu, chance)
        block.insert(at, ET.Element("step", copy))
        for number, step in enumerate(block):
            step.set("s", str(number))
    return ET.tostring(root, encoding="unicode"), every


def _depend(copy: dict[str, str], gpu: ET.Element, chance: random.Random) -> None:
    """Sometimes a dependence on a step of another thread block; the copy may stand before it itself."""
    found = [(tb, s) for tb in gpu for s, step in enumerate(tb) if step.get("type") != "nop"]
    if not found or chance.random() < 0.5:
        return
    tb, s = chance.choice(found)
    tb[s].set("hasdep", "1")
    copy.update(depid=tb.get("id", ""), deps=str(s))
