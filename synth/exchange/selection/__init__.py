"""Files by which libraries of today choose among their own algorithms, from one table of rules, and back.

========= ==================================== ==========================================================
format    library                              written from
========= ==================================== ==========================================================
nccl      NCCL, tuner plug-in ``example``      NVIDIA/nccl @5067397c, plugins/tuner/example: README, plugin.c
ompi      Open MPI, ``coll_tuned``             open-mpi/ompi v4.1.4, coll_tuned_dynamic_file.c, _rules.c
          Open MPI 6, the same as JSON         open-mpi/ompi @8efebee7, the same files
ucc       UCC, ``UCC_TL_UCP_TUNE``             openucx/ucc @8263de47, docs/user_guide.md, ucc_coll_score.c
========= ==================================== ==========================================================

MPICH's JSON is left out: "a detailed explanation of the content of the JSON files is beyond the scope of this
documentation" (pmodels/mpich @6a79bf65, doc/mpich/tuning_parameters.md), and a file must decide every collective.
"""

from synth.exchange.selection.formats import FORMATS, SelectionFormat, selection_format
from synth.exchange.selection.rules import Rule, chosen

__all__ = ["FORMATS", "Rule", "SelectionFormat", "chosen", "selection_format"]
