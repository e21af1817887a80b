"""Which worker of ``pytest -n`` gets which file: those that share kernels go to one worker, or both compile them."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

LONGEST = ("tests/test_readme.py", "tests/test_notebooks.py", "tests/synth/execution/test_faults.py")
"""Files of a minute each, which are not to be the last."""


def folder_of(scope: str) -> str:
    """A file's folder; `tests/models/fabric` holds no more than a family."""
    return scope.rpartition("/")[0]


class ByFolder(LoadFileScheduling):  # type: ignore[misc]
    """File by file as ``loadfile``, but a worker stays in its folders while these last, then takes the folder that
    nobody has, and only then helps in another's."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str:
        def had(by: Any) -> set[str]:
            return {folder_of(scope) for scope in self.assigned_work.get(by, {})}

        own = had(node)
        others = set().union(*(had(other) for other in self.nodes if other is not node))
        return min(self.workqueue, key=lambda scope: self._rank(scope, own, others))

    def _rank(self, scope: str, own: set[str], others: set[str]) -> tuple[bool, int, int]:
        """Longest files first; own folders, those of nobody, others'; of these the one with most tests left."""
        folder = folder_of(scope)
        left = sum(len(unit) for other, unit in self.workqueue.items() if folder_of(other) == folder)
        return scope not in LONGEST, 0 if folder in own else 2 if folder in others else 1, -left
