"""What holds for all tests: property tests find the same examples every time, a missing solver skips what needs it.

``--kernels-twice FILE`` runs every call of a kernel compiled and as plain Python, fails the session where they differ,
and writes the kernels that ran to the file.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import bytecode  # noqa: F401
import cold_start
import examples
import forked_command
import pytest
import texts_apart
import typer.testing

from synth import kernels
from synth.execution import supervisor
from synth.solvers.catalogue import known_solvers

typer.testing._get_command = cache(typer.testing._get_command)  # `CliRunner` builds the command once, not every time
kernels.COMPILING_S /= 4  # the tests run a kernel that they run at all thousands of times: compiled sooner


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kernels-twice", metavar="FILE", help="compare compiled kernels with plain ones")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a shell: deaf to interrupts
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(500_000, 20, 100)  # what lies in cycles is little, looking for it among all that is kept is not
    examples.configure(config)
    if sys.platform == "linux" and config.getoption("numprocesses", None):  # not in the workers themselves
        forked_command.listen_for_all()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["all_files"] = node.config.args_source is pytest.Config.ArgsSource.TESTPATHS


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    if worker and worker["all_files"]:
        cold_start.share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


@pytest.fixture(scope="session", autouse=True)
def _forked_guards() -> Iterator[None]:
    """Guards of runs that a test starts in this process are forked; `tests/synth/execution` tests the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "start_guard", forked_command.guard)
        yield


@pytest.fixture(scope="session", autouse=True)
def _texts_apart() -> Iterator[None]:
    """No figure that a test writes has a text that is cut, or one on another."""
    with texts_apart.every_figure_checked():
        yield


@pytest.fixture(scope="session", autouse=True)
def _kernels_twice(request: pytest.FixtureRequest) -> Iterator[None]:
    file = request.config.getoption("--kernels-twice")
    if file is None:
        yield
        return
    from kernels_twice import twice

    with twice() as found:
        yield
    Path(file).write_text(json.dumps({"kernels": sorted(found.kernels), "faults": found.faults}))
    assert not found.faults, "\n".join(found.faults)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test with a parameter `solver` needs that solver, and no other."""
    examples.leave_first(items)
    examples.mark_slow(config, items)
    for item in items:
        call = getattr(item, "callspec", None)
        solver = known_solvers().get(call.params.get("solver")) if call else None
        if solver is not None and not solver.installed:
            item.add_marker(pytest.mark.skip(reason=f"{solver.name} is not installed"))


def pytest_collection_finish() -> None:
    """No garbage collection looks through the collected tests."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadfile`` with files that share kernels in one worker."""
    if config.getoption("dist") != "loadfile":
        return None
    from side_by_side import ByFolder

    return ByFolder(config, log)
