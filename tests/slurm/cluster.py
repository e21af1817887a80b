"""A Slurm of its own with accounting, preemption and memory limits by the kernel, in one folder, for as long as a test
needs it: munge, MariaDB, slurmdbd, slurmctld and one slurmd, on ports nobody uses.

`SLURM_CONF` leads every command to it, so it stands beside the Slurm of `single_node.sh` or a real one. By hand:
`python tests/slurm/cluster.py FOLDER`, then `export SLURM_CONF=FOLDER/slurm.conf`; it ends with Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sacct", "sbatch")
NODE = "kept"
CGROUPS = Path("/sys/fs/cgroup")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def cannot() -> str | None:
    """Why it cannot be started here; None if it can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"not installed: {', '.join(missing)} (tests/slurm/single_node.sh installs them)" if missing else None


def kernel_limits() -> bool:
    """Whether control groups (v1, as Debian's Slurm 22.05 takes them here) can be made and limit memory."""
    probe = CGROUPS / f"memory/synth-probe-{os.getpid()}"
    try:
        probe.mkdir()
        (probe / "memory.limit_in_bytes").write_text("104857600")
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.rmdir()
    return all((CGROUPS / name).is_dir() for name in ("freezer", "cpuset", "devices"))


class Cluster:
    """The daemons of one such Slurm. Use as a context manager; raises ``RuntimeError`` with what a daemon said last."""

    def __init__(self, folder: Path, processors: int = 2, kernel: bool | None = None) -> None:
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._processors = processors
        self.kernel = kernel_limits() if kernel is None else kernel  # else Slurm itself looks once a second
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Cluster:
        try:
            self._write()
            self._start_munge()
            self._start_database()
            self._start("slurmdbd", "-D")
            self._until("slurmdbd", lambda: self.ask("sacctmgr", "-n", "show", "cluster") is not None)
            self.ask("sacctmgr", "-i", "add", "cluster", "kept")
            self._start("slurmctld", "-D", "-c")
            self._until("slurmctld", lambda: "is UP" in (self.ask("scontrol", "ping") or ""))
            self.start_node()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every daemon, the last first, and what is left of the jobs."""
        with contextlib.suppress(subprocess.SubprocessError, OSError, KeyError, RuntimeError):
            self.ask("scancel", "-u", "root")
            self._until("slurmctld", lambda: not self.ask("squeue", "-h"), 10)
        for name in reversed(list(self._daemons)):
            self.end(name)
        for groups in CGROUPS.glob(f"*/slurm_{NODE}"):  # slurmd leaves them behind, empty
            for place, _, _ in os.walk(groups, topdown=False):
                with contextlib.suppress(OSError):
                    Path(place).rmdir()

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End one daemon."""
        daemon = self._daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def start_node(self) -> None:
        """Start the node's slurmd and wait until jobs can run there."""
        self._start("slurmd", "-D", "-N", NODE)
        self._until("slurmd", self._node_is_ready)

    def crash_node(self) -> None:
        """What a power cut does: slurmd, its step managers and every process of the jobs end at once, unasked."""
        self.end("slurmd", signal.SIGKILL)
        deadline = time.monotonic() + 10
        while (left := self._processes()) and time.monotonic() < deadline:
            for process in left:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)

    def _processes(self) -> list[int]:
        """The step managers of this Slurm, then the processes of its jobs."""
        managers, others = [], []
        mark = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (place / "environ").read_bytes().split(b"\0")
                if mark not in words:
                    continue
                if (place / "cmdline").read_bytes().startswith(b"slurmstepd"):
                    managers.append(int(place.name))
                elif any(word.startswith(b"SLURM_JOB_ID=") for word in words):
                    others.append(int(place.name))
        return managers + others

    def ask(self, *command: str) -> str | None:
        """A Slurm command's output; None where it fails."""
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": PATH, **self.environment}
        )
        return done.stdout if done.returncode == 0 else None

    def _node_is_ready(self) -> bool:
        state = (self.ask("sinfo", "-h", "-N", "-p", "low", "-o", "%T") or "").strip()
        if state.startswith(("down", "drain")):
            self.ask("scontrol", "update", f"NodeName={NODE}", "State=RESUME")
        return state in ("idle", "mixed", "allocated")

    def _start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [name, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PATH": PATH,
                    **self.environment,
                    "MYSQL_UNIX_PORT": str(self._socket),
                },
            )

    def _until(self, name: str, reached: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline or self._daemons[name].poll() is not None:
                lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
                raise RuntimeError(f"{name} does not answer: {' / '.join(lines[-3:])}")
            time.sleep(0.1)

    @property
    def _socket(self) -> Path:
        return self.folder / "database.sock"

    def _start_munge(self) -> None:
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        names = ("socket", "key-file", "pid-file", "log-file", "seed-file")
        places = (f"--{name}={self.folder / name.replace('-file', '').join(('munge.', ''))}" for name in names)
        self._start("munged", "--foreground", "--force", *places)
        self._until("munged", lambda: (self.folder / "munge.socket").exists())

    def _start_database(self) -> None:
        """A database nobody can reach but through its socket in our folder, so it needs no users."""
        (self.folder / "database").mkdir()
        words = ("--no-defaults", f"--datadir={self.folder / 'database'}", f"--socket={self._socket}", "--user=root")
        self._start("mariadbd", *words, "--skip-networking", "--skip-grant-tables", "--innodb-buffer-pool-size=32M")
        self._until("mariadbd", self._socket.exists)

    def _write(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        ports = _free_ports(3)
        memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20 * 0.9)
        words = {
            "folder": self.folder, "host": platform.node().partition(".")[0], "node": NODE, "memory": memory,
            "controller": ports[0], "slurmd": ports[1], "database": ports[2], "processors": self._processors,
            "tracking": "cgroup" if self.kernel else "linuxproc", "tasks": "cgroup" if self.kernel else "none",
            "gather": "" if self.kernel else "JobAcctGatherParams=OverMemoryKill\n",
        }  # fmt: skip
        for name, text in (("slurm", SLURM), ("slurmdbd", SLURMDBD), ("cgroup", CGROUP)):
            (self.folder / f"{name}.conf").write_text(text.format(**words))
        (self.folder / "slurmdbd.conf").chmod(0o600)


# One partition whose jobs give way and start again, one whose jobs give way and end, one of each with a grace period,
# and the one they give way to. A job starts again five seconds after its end (cred_expire).
SLURM = """\
ClusterName=kept
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={slurmd}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/{tracking}
TaskPlugin=task/{tasks}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
{gather}AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={folder}/munge.socket
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=500
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=10
KillWait=2
MinJobAge=5
MaxArraySize=16
MailProg=/bin/true
MpiDefault=none
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={slurmd} CPUs={processors} RealMemory={memory}
PartitionName=low Nodes={node} Default=YES DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=low-end Nodes={node} DefaultTime=60 PriorityTier=1 PreemptMode=CANCEL
PartitionName=low-grace Nodes={node} DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=low-end-grace Nodes={node} DefaultTime=60 PriorityTier=1 PreemptMode=CANCEL GraceTime=10
PartitionName=high Nodes={node} DefaultTime=60 PriorityTier=9 PreemptMode=OFF
"""
SLURMDBD = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
PidFile={folder}/slurmdbd.pid
"""
CGROUP = """\
CgroupPlugin=cgroup/v1
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [taken.getsockname()[1] for taken in sockets]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Cluster(Path(sys.argv[1]).resolve()) as cluster:
        print(f"export SLURM_CONF={cluster.environment['SLURM_CONF']}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
