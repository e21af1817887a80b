"""What a file holds, told by its name and its first bytes."""

from __future__ import annotations

from pathlib import Path

HEAD = 4096  # bytes of a file by which its format is told


def is_algorithm(path: Path) -> bool:
    """Whether a file holds an algorithm rather than a record: XML, or a plan in JSON."""
    return path.suffix.lower() == ".xml" or is_plan(path)


def holds_algorithm(path: Path) -> bool:
    """Whether a file's own words say that it holds an algorithm; other XML files do not."""
    if path.suffix.lower() != ".xml" or not path.is_file():
        return is_plan(path)
    with path.open("rb") as stream:
        return b"<algo" in stream.read(HEAD)


def is_plan(path: Path) -> bool:
    """Whether a file, whatever its name, is JSON and looks like an execution plan of MSCCL++."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        head = stream.read(HEAD).lstrip()
    return head.startswith(b"{") and b'"gpus"' in head and b'"synth-record/' not in head


def beside(path: Path) -> Path:
    """The file for calls in place that stands beside another."""
    return path.with_stem(f"{path.stem}-inplace")
