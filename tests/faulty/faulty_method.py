"""The method of :mod:`synth_faulty`: its guard and its run import this, the command does not."""

from __future__ import annotations

import ctypes
import os
import time

from synth_faulty import behave

match os.environ.get("FAULTY_IMPORT"):
    case "crash":
        ctypes.string_at(0)
    case "exit":
        os._exit(7)
    case "raise":
        raise RuntimeError("this module cannot be imported")
    case "hang":
        time.sleep(1000)

__all__ = ["behave"]
