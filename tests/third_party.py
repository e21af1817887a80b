"""Distributions of others, installed into a temporary folder as an installer does: packages and ``.dist-info`` on the
path, no network; and the command as their users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import forked_command

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "tests" / "toy_family"


class Place:
    """The folder ``work`` of somebody's project, and ``site`` with what is installed for it. The command is forked, or
    started anew where that is its test's subject."""

    def __init__(self, base: Path, forked: bool = True) -> None:
        self.forked = forked
        self.site, self.work = base / "site-packages", base / "work"
        self.site.mkdir(parents=True)
        self.work.mkdir(parents=True)

    def install(self, pyproject: str, files: Mapping[str, str]) -> None:
        """A distribution: its project file and its modules and data, name to text."""
        project = tomllib.loads(pyproject)["project"]
        for name, text in files.items():
            path = self.site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        about = self.site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        about.mkdir()
        named = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (about / "METADATA").write_text(named)
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def install_toy(self) -> None:
        """The toy family, and its instances in the work folder."""
        files = [path for path in (TOY / "toy_broadcast").iterdir() if path.suffix in (".py", ".toml")]
        self.install(
            (TOY / "pyproject.toml").read_text(), {f"toy_broadcast/{path.name}": path.read_text() for path in files}
        )
        shutil.copytree(TOY / "instances", self.work / "instances")

    def uninstall(self, name: str) -> None:
        """Take a distribution away again; its modules stay where nobody finds them."""
        for about in self.site.glob(f"{name.replace('-', '_')}-*.dist-info"):
            shutil.rmtree(about)

    def synth(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The command, run in the work folder."""
        paths = [str(self.site), os.environ.get("PYTHONPATH", "")]
        where = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        if self.forked:
            return forked_command.run(["synth", *arguments], cwd or self.work, where, 120)
        command = [sys.executable, "-P", "-c", "from synth.cli.main import run; run()", *arguments]
        return subprocess.run(command, cwd=cwd or self.work, capture_output=True, text=True, timeout=120, env=where)

    def done(self, *arguments: str, code: int = 0) -> str:
        """What the command prints on standard output; it ends with this code."""
        result = self.synth(*arguments)
        assert result.returncode == code, result.stdout + result.stderr
        return result.stdout
