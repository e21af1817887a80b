"""Which worker of ``pytest -n`` gets which file: those that share kernels go to one worker, or both compile them."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

FIRST = ("tests/models/fabric", "tests/synth/execution")
"""The folder with most kernels, and beside it the one whose tests mostly wait: neither is to be the last."""
LATE = ("tests", "tests/exchange", "tests/exchange/machines")  # and tests/papers/*
"""What runs the families' methods, and finds their kernels compiled where the families' own tests came before."""
LONGEST = ("tests/test_readme.py", "tests/test_notebooks.py")
"""Files that come before the others of their folder, so that neither is the last."""


def folder_of(scope: str) -> str:
    """A file's folder; one for all rooms of a family, which share its kernels."""
    return "/".join(scope.split("/")[:-1][:3])


def turn(folder: str) -> int:
    """When a folder comes: 0 is first."""
    if folder in FIRST:
        return 0
    return 2 if folder.startswith("tests/papers") or folder in LATE else 1


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

    def _rank(self, scope: str, own: set[str], others: set[str]) -> tuple[int, int, int, bool]:
        """Own folders, those of nobody, others'; of these the one whose turn it is, with most tests left; of its files
        the longest."""
        folder = folder_of(scope)
        left = sum(len(unit) for other, unit in self.workqueue.items() if folder_of(other) == folder)
        whose = 0 if folder in own else 2 if folder in others else 1
        return whose, turn(folder), -left, scope not in LONGEST
