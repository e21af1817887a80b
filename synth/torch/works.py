"""Handles of what is under way, and the one thread of a group that does it in order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import torch
from torch._C._distributed_c10d import Work, _create_work_from_future

OLD = int(torch.__version__.split(".")[0]) < 2  # there C++ asks a Work written in Python for no future
CALLER = "torch.distributed.distributed_c10d"


class Pending(Work):  # type: ignore[misc]
    """What a thread will have done."""

    def __init__(self, future: torch.futures.Future[Any], timeout: timedelta) -> None:
        super().__init__()
        self.future, self.timeout = future, timeout

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait; raises what went wrong."""
        self.future.wait()
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return bool(self.future.done())

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """What went wrong, if it has ended."""
        try:
            self.future.value()
        except RuntimeError as error:
            return error
        return None

    def result(self) -> Any:
        """The tensors."""
        return self.future.value()

    def get_future(self) -> torch.futures.Future[Any]:
        """Its future."""
        return self.future


class Thread:
    """Does what it is given, in order. ``end`` lets it end when that is done."""

    def __init__(self, name: str) -> None:
        self.queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (do := self.queue.get()) is not None:
            do()

    def begin(self, do: Callable[[], None], result: Any, timeout: timedelta) -> Any:
        """A Work that ends when ``do`` has been done. Called by a collective of torch's Python, whose caller's frame
        tells it from C++."""
        future: torch.futures.Future[Any] = torch.futures.Future()

        def run() -> None:
            try:
                with torch.no_grad():
                    do()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.queue.put(run)
        return _create_work_from_future(future) if OLD and not _from_python() else Pending(future, timeout)

    def end(self) -> None:
        """Let the thread end."""
        self.queue.put(None)


def _from_python() -> bool:
    """Whether any of the few frames above is torch's Python of collectives."""
    try:
        frame = sys._getframe(1)
    except ValueError:
        return False
    for _ in range(6):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") == CALLER:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
