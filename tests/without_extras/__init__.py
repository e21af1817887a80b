"""An environment in which no extra can be imported, whatever is installed: its variables."""

from __future__ import annotations

import os
from pathlib import Path

BLOCKED = ("gurobipy", "pyscipopt", "pyarrow", "submitit")
WITHOUT_EXTRAS = {
    "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))),
    "BLOCKED_MODULES": " ".join(BLOCKED),
}
