"""Schedules of ``synth tune`` in a job of PyTorch.

``import synth.torch`` registers the back-end ``synth``: :func:`use` names folders of ``synth tune … --for torch`` and
the inner back-end, then ``torch.distributed.init_process_group("synth")`` makes groups that run them by the inner
back-end's sends and receives, and hand it everything else. :func:`run` and :func:`allreduce` run one plan on tensors.

A sum is formed in the tensor's type: what the rank holds, then what arrives round after round, within a round by the
number of the sender. Logger ``synth.torch`` says once (level INFO) which collective of which group goes which way.
"""

from __future__ import annotations

from synth.torch.backend import register, use
from synth.torch.functions import allreduce, read_plan, run

register()

__all__ = ["allreduce", "read_plan", "run", "use"]
