"""``synth …`` in a process forked from one that has imported the command: a real process, without the imports' time.

The process has its own folder, environment, output and exit code. It forks the guards of its runs, as large as it is
by its imports, unless ``new_guards`` asks for what the command itself would do; those of runs that pytest's own process
starts are forked beside it (:func:`guard`). With a ``PYTHONPATH`` of its own a process looks again for what others have
installed. What an interpreter does before its first line (options and variables of its own) is not there: the tests of
starting and of faults start new interpreters (:func:`command.cold`, :func:`faulty.files.start`).

``python forked_command.py FOLDER`` is one process for all workers of a session: it listens in the folder, imports what
a server needs once the first is asked for, and forks a server for everyone who connects.
"""

from __future__ import annotations

import atexit
import gc
import json
import math
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import import_module, invalidate_caches
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NoReturn

from synth import family
from synth.execution import guard as guards
from synth.execution import supervisor
from synth.execution.guard import GUARD_VARIABLES
from synth.family import Family, family_names, get_family
from synth.plugins import added, entry_points
from synth.solvers import catalogue

MOST_BYTES = 1 << 20  # of one message
BY_THE_INTERPRETER = ("PYTHON", "LD_", "MALLOC_", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_")  # read when a process starts
PATHS = "PYTHONPATH"
BY_THE_COMMAND = "OPENBLAS_NUM_THREADS"  # which it sets itself, also where a test calls it in its own process
GUARD = "<guard>"  # in place of a command
LISTENER = "FORKED_COMMANDS"  # the variable with the folder of the process that forks servers
PLACES = ("commands", "methods")  # where it listens: a server without the methods, one with them
NEW_GUARD = supervisor.start_guard


def run(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float, new_guards: bool = False
) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` does with text that is captured; raises ``subprocess.TimeoutExpired``."""
    server = _server(with_methods=not new_guards)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        task = json.dumps([list(command), os.fspath(cwd), dict(environment), new_guards]).encode()
        assert len(task) < MOST_BYTES
        socket.send_fds(server, [task], [out.fileno(), err.fileno()])
        process = int(server.recv(MOST_BYTES))
        server.settimeout(timeout)
        try:
            code = int(server.recv(MOST_BYTES))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            server.settimeout(None)
            server.recv(MOST_BYTES)
            raise subprocess.TimeoutExpired(command, timeout) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(command, code, *texts)


class ForkedGuard:
    """A guard that another process has forked, with what the supervisor needs of ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raises ``subprocess.TimeoutExpired``."""
        with suppress(ProcessLookupError):  # it has ended, and its parent knows
            end = os.pidfd_open(self.pid)
            try:
                if not select.select([end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("guard", timeout or 0.0)
            finally:
                os.close(end)


def guard(line: Connection[Any, Any], errors: IO[bytes]) -> Any:
    """As ``supervisor.start_guard``, for runs that this process itself starts."""
    if not can_fork(os.environ):
        return NEW_GUARD(line, errors)
    server = _server(with_methods=True)
    task = json.dumps([[GUARD], os.getcwd(), dict(os.environ), False]).encode()
    socket.send_fds(server, [task], [line.fileno(), errors.fileno()])
    return ForkedGuard(int(server.recv(MOST_BYTES)))


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process in this environment starts as the server did."""
    return sys.platform == "linux" and _read_at_the_start(environment) == STARTED_WITH


def _read_at_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that only a new interpreter reads, but for the paths and the command's own."""
    return {
        key: word
        for key, word in environment.items()
        if key.startswith(BY_THE_INTERPRETER) and key not in (PATHS, BY_THE_COMMAND)
    }


STARTED_WITH = _read_at_the_start(os.environ)


def listen_for_all() -> None:
    """Start the process that forks servers, for this process and for all that get its environment."""
    os.environ[LISTENER] = _listener()


@cache
def _listener() -> str:
    """Start the process that forks servers; the folder in which it listens, until this process ends."""
    folder = tempfile.mkdtemp(prefix="synth-tests-")
    words, environment = [sys.executable, __file__, folder], {**os.environ, **GUARD_VARIABLES}
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.DEVNULL, env=environment)
    theirs.close()
    assert ours.recv(1), "the process that forks commands does not start"

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return folder


@cache
def _server(with_methods: bool) -> socket.socket:
    """The line to one of this process's two servers, which ends when the line is closed. A command that starts its
    guards as users' do must not have held much: it comes from the one without methods."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(os.path.join(os.environ.get(LISTENER) or _listener(), PLACES[with_methods]))
    return line


def _listen(folder: str) -> NoReturn:
    """Serve everyone who connects, in a fork, until who has started this process ends. Those with methods are forked
    from a fork that has imported them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its line
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a server has ended
    line, places = socket.socket(fileno=os.dup(0)), {}
    for name in PLACES:
        places[name] = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        places[name].bind(os.path.join(folder, name))
        places[name].listen()
    line.send(b".")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    del sys.path[0]  # the folder of this file
    imported = False
    while line not in (ready := select.select([line, *places.values()], [], [])[0]):
        if not imported:
            _import_what_commands_need()
            gc.freeze()  # a collection in a fork would copy the pages that it shares with the others
            imported = True
        if len(places) == 1 or places["methods"] not in ready:
            connection, _ = ready[0].accept()
            if os.fork() == 0:
                _close([line, *places.values()])
                _serve(connection)
            connection.close()
        elif os.fork() == 0:
            _close([places.pop("commands")])
            _import_methods()
            gc.freeze()
        else:
            _close([places.pop("methods")])
    if "commands" in places:
        shutil.rmtree(folder)
    os._exit(0)


def _close(sockets: Iterable[socket.socket]) -> None:
    for one in sockets:
        one.close()


def _serve(line: socket.socket) -> NoReturn:
    from synth.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    serving: set[int] = set()  # the guards
    while True:
        message, files, _, _ = socket.recv_fds(line, MOST_BYTES, 2)
        serving -= {pid for pid in serving if os.waitpid(pid, os.WNOHANG)[0]}
        if not message:
            os._exit(0)
        task = json.loads(message)
        process = os.fork()
        if process == 0:
            line.close()
            if task[0] == [GUARD]:
                _take_place(*task[:3])
                guards.become(*files)
            os._exit(_become(main.run, task, files))
        for file in files:
            os.close(file)
        line.send(str(process).encode())
        if task[0] == [GUARD]:
            serving.add(process)
            continue
        _, status = os.waitpid(process, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def _import_what_commands_need() -> None:
    """Import the parts of our families that commands ask for, and what they draw and print with."""
    for name in (
        "synth.api",
        "synth.execution.pool",
        "synth.study.collect",
        "synth.records.folder",
        "matplotlib.pyplot",
    ):
        import_module(name)
    for one in map(get_family, family_names()):
        capable = [target for name, target in one.capabilities.items() if name not in ("paper", "findings")]
        for part in [*(getattr(one, field.name) for field in fields(Family)), *capable]:
            if isinstance(part, str) and re.fullmatch(r"[\w.]+:\w+", part):
                import_module(part.partition(":")[0])


def _import_methods() -> None:
    """Import our methods, and with them Pyomo and the solvers, which none of their runs then imports."""
    for one in map(get_family, family_names()):
        for method in one.methods.values():
            import_module(method.target.partition(":")[0])


def _take_place(words: list[str], folder: str, environment: Mapping[str, str]) -> None:
    """Have the arguments, the folder and the environment of another process."""
    before, after = (where.get(PATHS, "").split(os.pathsep) for where in (os.environ, environment))
    sys.argv = words
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if before != after:
        _look_again([path for path in after if path not in ("", *before)])


def _look_again(paths: list[str]) -> None:
    """Find what is installed in these places too, which an interpreter that starts there would have found."""
    sys.path[:0] = paths
    invalidate_caches()
    for found in (entry_points._by_name, added.certificates, family.get_family, catalogue.known_solvers):
        found.cache_clear()
    entry_points._COMPLAINTS.clear()


def _become(call: Any, task: Any, files: Sequence[int]) -> int:
    """Call the entry point as its console script does; what the interpreter would end with."""
    code: Any = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        words, folder, environment, new_guards = task
        _take_place(words, folder, environment)
        if not new_guards:
            supervisor.FORKED_MB = math.inf
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
            os.close(file)
        call()
        code = 0
    except SystemExit as ended:
        code = ended.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    return 0 if code is None else int(code) & 0xFF


if __name__ == "__main__":
    _listen(sys.argv[1])
