"""What a notebook shows of an object: a small table of names and values."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def card(rows: Mapping[str, str]) -> str:
    """The rows as an HTML table."""
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows.items())
    return f"<table>{cells}</table>"
