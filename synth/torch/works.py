"""Handles of what is under way, and the one thread of a group that does it in order."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import torch
from torch._C._distributed_c10d import Work, _create_work_from_future

OLD = int(torch.__version__.split(".")[0]) < 2  # there C++ asks a Work written in Python for no future
CALLER = "torch.distributed.distributed_c10d"


class Pending(Work):  # type: ignore[misc]
    """What a thread will have done, or whoever waits for it first."""

    def __init__(self, future: torch.futures.Future[Any], thread: Thread) -> None:
        super().__init__()
        self.future, self.thread = future, thread

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait; raises what went wrong."""
        self.thread.help(self.future)
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
    """Does what it is given, in order; who waits for something that has not begun does it instead. ``end`` lets the
    thread end when all is done."""

    def __init__(self, name: str) -> None:
        self.queue: SimpleQueue[bool] = SimpleQueue()  # a word for each of what is left
        self.left: deque[Callable[[], None]] = deque()
        self.turn = threading.RLock()  # of whoever does the first of what is left
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while self.queue.get():
            self._next()

    def _next(self) -> None:
        with self.turn:
            if self.left:
                self.left.popleft()()

    def help(self, future: torch.futures.Future[Any]) -> None:
        """Do what is left up to what this is the future of."""
        while not future.done() and self.left:
            self._next()

    def begin(self, do: Callable[[], None], result: Any) -> Any:
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

        self.left.append(run)
        self.queue.put(True)
        return _create_work_from_future(future) if OLD and not _from_python() else Pending(future, self)

    def end(self) -> None:
        """Let the thread end."""
        self.queue.put(False)


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
