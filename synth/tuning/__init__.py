"""Which algorithm a machine should run for which size: ``synth tune``.

``search`` runs methods and ranks what their schedules become in the form that will run (``rows``), ``sizes`` reads the
sizes, ``table`` is what it says, ``folder`` is what it writes.
"""

from synth.tuning.question import Question
from synth.tuning.rows import Row
from synth.tuning.search import tune

__all__ = ["Question", "Row", "tune"]
