"""Untrusted XML and JSON as data: no entities, no DTD, bounded depth, numbers checked before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import yaml
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from synth.errors import Fault, InputError, abridged
from synth.instance import parse_json

MOST_DEPTH, MOST_YAML_DEPTH = 64, 16
MOST_TAGS = 1_500_000
MOST_YAML = 2**20
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEGINNING = 2**16  # characters in which a root stands
_OUTSIDE_DTD = re.compile(
    r"""<!DOCTYPE\s{1,9}[\w:.-]{1,60}\s{1,9}(?:SYSTEM|PUBLIC\s{1,9}"[^"<>]{0,200}")\s{1,9}(?:"[^"<>]{0,200}"|'[^'<>]{0,200}')\s{0,9}>"""
)
_BRACKETS = re.compile(r"[\[\]{}]")
_DEEP = re.compile(r"(?m)^ {64}|(?:[-?] {1,8}){9}")  # indented far, or many lists and keys that begin in one line


def xml_root(text: str, names_dtd: bool = False) -> Element:
    """The root of an XML text. Raises :class:`InputError`, also for a DTD or entities, which no format needs.
    ``names_dtd``: a declaration that only says where a DTD is (hwloc, SimGrid) is passed over, nothing is fetched."""
    if text.count("<") > MOST_TAGS:
        raise InputError(f"holds more than {MOST_TAGS:,} tags, the most that is read")
    if names_dtd:
        text = _OUTSIDE_DTD.sub(lambda found: "\n" * found[0].count("\n"), text, count=1)
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        line, column = error.position
        words = str(error).partition(":")[0]
        raise InputError([Fault(f"line {line}, column {column + 1}", f"not valid XML: {words}")]) from None
    except DefusedXmlException:
        raise InputError("holds a DTD or entities, which such a file does not need and which are not read") from None
    except (ValueError, LookupError) as error:
        raise InputError(f"not valid XML: {abridged(str(error))}") from None
    if any(depth > MOST_DEPTH for depth in _depths(root)):
        raise InputError(f"is nested deeper than {MOST_DEPTH} elements")
    return root


def root_name(text: str) -> str:
    """The name of the root element (or of the DTD) as the text's beginning shows it, without reading it as XML."""
    rest = text[:_BEGINNING].lstrip("\ufeff \t\r\n")
    while rest.startswith(("<?", "<!--")):
        _, _, rest = rest.partition("-->" if rest.startswith("<!--") else "?>")
        rest = rest.lstrip()
    if not rest.startswith("<"):
        return ""
    words = rest[1:200].replace("/", " ").replace(">", " ").replace("[", " ").split()
    return "".join(words[1:2] if words[:1] == ["!DOCTYPE"] else words[:1])


def yaml_value(text: str) -> Any:
    """What a YAML text holds. Raises :class:`InputError`, also for aliases and for deep nesting, which no format needs:
    PyYAML's time grows with the square of the depth."""
    if len(text) > MOST_YAML:
        raise InputError(f"is larger than {MOST_YAML:,} characters, the most of YAML that is read")
    open_brackets = accumulate((sign in "[{") - (sign in "]}") for sign in _BRACKETS.findall(text))
    if max(open_brackets, default=0) > MOST_YAML_DEPTH or _DEEP.search(text):
        raise InputError("is nested deeper than such a file needs")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_LOADER)):
            raise InputError("has aliases (*name), which such a file does not need and which can hide a huge one")
        return yaml.load(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError([Fault(where, f"not valid YAML: {error.problem}")]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"not valid YAML: {str(error).splitlines()[0]}") from None


def json_object(text: str) -> dict[str, Any]:
    """The object that a JSON text holds. Raises :class:`InputError`."""
    try:
        raw = parse_json(text.encode("utf-8", "surrogatepass"), "")
    except InputError as error:
        raise InputError(error.faults) from None
    if not isinstance(raw, dict):
        raise InputError("must hold one JSON object")
    return raw


def looks_like_json(text: str) -> bool:
    """Whether a text begins as a JSON object does."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def whole_attribute(element: Element, key: str, least: int, most: int) -> int:
    """An attribute as a whole number in ``least..most``. Raises ``ValueError`` in words, without the value."""
    text = attribute(element, key)
    body = text.strip().removeprefix("-")
    if not (body.isascii() and body.isdigit()) or len(body) > 18:
        raise ValueError("must be a whole number")
    if not least <= int(text) <= most:
        raise ValueError(f"must be in {least}..{most}")
    return int(text)


def attribute(element: Element, key: str) -> str:
    """An attribute's text. Raises ``ValueError``."""
    text = element.get(key)
    if text is None:
        raise ValueError("is missing")
    return text


def unknown_keys(raw: Mapping[str, Any], known: tuple[str, ...], path: str = "") -> list[Fault]:
    """A fault a key that nobody reads."""
    return [Fault(f"{path}{str(key)[:40]}", "unknown key") for key in raw if key not in known]


def _depths(root: Element) -> Iterator[int]:
    layer, depth = [root], 1
    while layer and depth <= MOST_DEPTH + 1:
        yield depth
        layer, depth = [child for element in layer for child in element], depth + 1
