"""The process of one run: read what to do from standard input, run it, write the record."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> int:
    """Exit code 0 when the record is on disk, ``WRITE_FAILED`` when it cannot be written."""
    from synth import api
    from synth import record as records
    from synth.family import get_family
    from synth.instance import read
    from synth.options import RunOptions
    from synth.runner import WRITE_FAILED, cannot_write

    todo = json.load(sys.stdin)
    instance = read(todo["instance"])
    options = RunOptions(**todo["options"])
    path = Path(todo["record"])
    record = api.execute(instance, get_family(instance.family).method(todo["method"]), options)
    try:
        records.write(record, path)
    except OSError as error:
        print(cannot_write(path, error), file=sys.stderr)
        return WRITE_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
