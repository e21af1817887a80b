"""A machine is the same through prefixes, prompts, colours, odd spaces and encodings; who differs is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchange.machines.reading import SAMPLES, refused, text_of
from exchange.test_launcher_lines import PREFIXES, with_prefix

from synth.exchange.machines.formats import read, read_text
from synth.exchange.machines.machine import Machine
from synth.exchange.machines.pasted import MOST_PARTS, parts

NAMES = ("dgx1-topo.txt", "links.csv", "v100-pair.xml", "graph.json", "torus.yml", "graph.graphml")
FIELD = Path(__file__).parents[4] / "shared/data/field/07-launcher-prefixes/pdsh-topo.txt"
SHELLS = ("user@host:~/x$", "[root@n01 tmp]#", "(base) me@box:~$", "host-a$", "$", "PS C:\\Users\\me>")


def plain(name: str) -> Machine:
    return read(SAMPLES / name)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", NAMES)
def test_through_a_prefix(prefix: str, name: str) -> None:
    found = read_text(with_prefix(prefix, text_of(name)), name)
    assert (found.links, found.names) == (plain(name).links, plain(name).names)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", NAMES)
def test_between_prompts_and_fences(shell: str, name: str) -> None:
    text = f"```text\n{shell} cat {name}\n{text_of(name)}{shell} exit\n```\n"
    assert read_text(text, name).links == plain(name).links
    assert read_text(with_prefix("n1: ", text), name).links == plain(name).links


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", NAMES)
def test_in_another_encoding_with_other_line_ends(encoding: str, name: str, tmp_path: Path) -> None:
    text = "host$ tool\r\n" + text_of(name).replace("\n", "\r\n")
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    (tmp_path / name).write_bytes(mark + text.encode(encoding))
    assert read(tmp_path / name).links == plain(name).links


@pytest.mark.parametrize("name", ["dgx1-topo.txt", "a100-topo.txt", "k80-topo.txt", "v100-pair.xml", "torus.yml"])
def test_with_spaces_of_a_web_page(name: str) -> None:
    for space in ("\u00a0", "\u202f", " \u200b"):
        assert read_text(text_of(name).replace(" ", space), name).links == plain(name).links


@pytest.mark.parametrize("name", ["dgx1-topo.txt", "v100-pair.xml", "torus.yml"])
def test_with_colours(name: str) -> None:
    coloured = "".join(f"\x1b[1;32m{line}\x1b[0m\x1b[K\n" for line in text_of(name).splitlines())
    assert read_text(coloured, name).links == plain(name).links
    assert read_text(f"\x1b]0;title\x07{with_prefix('[0] ', coloured)}", name).links == plain(name).links


@pytest.mark.parametrize("escape", ["\x1b", "", "^[", "\u241b"])
@pytest.mark.parametrize("name", ["dgx1-topo.txt", "a100-topo.txt", "h100-topo.txt", "s5000-topo.txt"])
def test_with_an_underlined_header(name: str, escape: str) -> None:
    """As drivers print it; a page or a log may take the escape's first character away, or show it."""
    text, head = text_of(name), next(line for line in text_of(name).splitlines() if line.split()[:1] == ["GPU0"])
    spaces = head[: len(head) - len(head.lstrip())]
    underlined = text.replace(head, f"{spaces}{escape}[4m{head.lstrip()}{escape}[0m", 1)
    assert read_text(underlined, name).links == plain(name).links


@pytest.mark.parametrize("name", ["dgx1-topo.txt", "npu-topo.txt", "s5000-topo.txt"])
def test_as_a_table_of_markdown(name: str) -> None:
    lines = [line.split("\t") for line in text_of(name).splitlines() if line.count("\t") > 2]
    rows = [
        "| " + " | ".join([f"**{first.strip()}**" if first.strip() else "", *cells]) + " |" for first, *cells in lines
    ]
    text = "\n".join([rows[0], "|---" * len(lines[0]) + "|", *rows[1:]])
    assert read_text(text, name).links == plain(name).links


@pytest.mark.parametrize("name", ["v100-pair.xml", "graph.graphml", "platform.xml", "box-hwloc.xml"])
def test_xml_between_lines_of_a_log(name: str) -> None:
    """Its lines keep their numbers; the same lines without the XML are what they were."""
    around = "n1:12:34 [0] NCCL INFO Bootstrap : Using eth0\n"
    assert read_text(f"{around * 3}{text_of(name)}\n{around}", name).links == plain(name).links
    broken = text_of(name).replace("</", "<", 1)
    assert "not valid XML" in refused(f"{around}{broken}")
    assert "is a log of NCCL" in refused(around * 3)


def test_writers_of_one_machine_are_named() -> None:
    lines = text_of("dgx1-topo.txt").splitlines()
    mixed = "\n".join(f"{host}: {line}" for line in lines for host in ("n1", "n2", "n3"))
    machine = read_text(mixed, "hosts.txt")
    assert machine.links == plain("dgx1-topo.txt").links
    assert machine.left_out == ("what n2:, n3: wrote: the same machine",)


def test_writers_of_unlike_machines_are_refused_by_line() -> None:
    first, other = text_of("dgx1-topo.txt"), text_of("a100-topo.txt")
    text = with_prefix("n1: ", first) + with_prefix("n2: ", other)
    line = len(first.splitlines()) + 1
    message = f"line {line}: what n2: wrote is another machine than n1: shows: one machine a file"
    assert refused(text, "hosts.txt") == f"hosts.txt: {message}"


def test_lines_of_faults_are_those_of_the_file() -> None:
    text = "host$ nvidia-smi topo -m\n[0] \tGPU0\tGPU1\n[0] GPU0\t X \tLAN\n[0] GPU1\tNV1\t X \n"
    assert "line 3, GPU0-GPU1 = 'LAN'" in refused(text)
    assert "line 3, GPU0-GPU1 = 'LAN'" in refused(text, format_name="nvidia-smi")


def test_too_many_writers_are_none() -> None:
    lines = [f"w{n}: line {n}" for n in range(50_000) for _ in range(2)]
    assert parts("\n".join(lines)) == []
    assert len(parts("\n".join(lines[: 2 * MOST_PARTS]))) == MOST_PARTS
    assert parts("a@" + "a" * 100_000)[0].text == "a@" + "a" * 100_000
    assert "is of no topology format" in refused("\n".join(lines))


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    machine = read(FIELD)
    assert [(link.kind, link.lanes) for link in machine.links] == [("NV", 12)] * 2
