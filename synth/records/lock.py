"""Locks on folders of records, between processes and, where the file system carries locks, between machines.

The lock is :class:`filelock.FileLock`, ``flock`` on Linux. On NFS it holds between machines when the mount carries
locks (NFS 4, or NFS 3 with ``lockd``), not with ``nolock`` or ``local_lock=flock``; on Lustre with ``-o flock``. The
kernel frees the lock of a process that dies. The lock file says who holds it and is removed with the lock.
"""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synth.errors import abridged
from synth.text.visible import visible

if TYPE_CHECKING:
    from filelock import FileLock

Purpose = Literal["writing", "packing", "page", "batch"]
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)  # what a file system without locks answers
POLL_S = 0.02  # between two attempts
wait_s = 60.0  # how long a lock of another process is waited for


class LockedError(OSError):
    """Another process holds the lock for too long. The message says who; ``filename`` is the folder."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


@contextmanager
def held(folder: Path, purpose: Purpose, *, needed: bool = True, most_s: float | None = None) -> Iterator[None]:
    """Hold the folder's lock for this purpose: a lock per folder and purpose, not taken twice by one thread.

    Raises :class:`LockedError` when another process holds it for ``most_s`` seconds (default ``wait_s``), and
    ``OSError`` when the folder cannot be written. Where the file system has no locks, raises ``OSError`` if the lock is
    ``needed`` and goes on without it otherwise.
    """
    there = file(folder, purpose)
    lock = _acquired(there, needed, wait_s if most_s is None else most_s)
    try:
        yield
    finally:
        if lock is not None:
            with suppress(OSError):
                there.unlink()
            lock.release()


def file(folder: Path, purpose: Purpose) -> Path:
    """The file that is there while the lock is held (and after a holder was killed, until the next one)."""
    return folder / f".{purpose}.lock"


@contextmanager
def writing(path: Path, family: str, instance: str) -> Iterator[None]:
    """Hold the lock under which the record file at this address is written or removed: that of the results folder of
    ``<results>/<family>/<instance>/<method>.json``, and of its own folder elsewhere. Raises as :func:`held`."""
    with held(results_folder(path, family, instance), "writing", needed=False):
        yield


def results_folder(path: Path, family: str, instance: str) -> Path:
    """The folder whose lock :func:`writing` takes."""
    path = path.resolve()
    return path.parents[2] if path.parts[-3:-1] == (family, instance) else path.parent


def _acquired(there: Path, needed: bool, most_s: float) -> FileLock | None:
    """The lock, held; None where the file system has none and none is ``needed``."""
    from filelock import FileLock, Timeout

    is_current = False

    def note(handle: int) -> None:
        nonlocal is_current
        with suppress(OSError):  # a full disk: then the file does not say who holds it
            os.ftruncate(handle, 0)
            os.pwrite(handle, visible(_me()).encode(), 0)
        with suppress(FileNotFoundError):
            is_current = os.path.samestat(os.fstat(handle), os.stat(there))

    lock = FileLock(there, most_s, poll_interval=POLL_S, fallback_to_soft=False, on_acquired=note)
    while True:
        try:
            there.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            words = f"locked by {_holder(there)} for over {most_s:g} s; wait for its end or end it"
            raise LockedError(errno.EBUSY, words, str(there.parent)) from None
        except FileNotFoundError:  # `synth pack` has just removed the empty folder
            continue
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            if needed:
                words = f"the file system has no locks ({error.strerror}); copy the folder to one that has"
                raise OSError(error.errno, words, str(there.parent)) from None
            return None
        if is_current:
            return lock
        lock.release()  # NFS keeps the lock file that its last holder removed under another name: it guards nothing


def _me() -> str:
    """This process in words."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    command = abridged(shlex.join([name, *sys.argv[1:]]), 200)
    return f"`{command}` (process {os.getpid()} on {platform.node()}, since {datetime.now():%Y-%m-%d %H:%M:%S})"


def _holder(there: Path) -> str:
    """Who holds the lock, as the lock file says."""
    try:
        text = there.read_bytes()[:1000].decode(errors="replace")
    except OSError:
        text = ""
    return abridged(visible(text.strip()), 300) or "another process"
