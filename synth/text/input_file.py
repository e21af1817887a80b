"""Files that people name: each is opened once, so that a pipe says all it has to say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from synth.errors import InputError
from synth.text.files import decode

MOST_BYTES, PIECE = 2**30, 2**20
DESCRIPTORS = ("/dev/fd", "/proc/self/fd")
T = TypeVar("T")


class InputFile:
    """A file by its path, opened when its content is first needed and never again.

    ``path``: as given. As the type of a field it takes texts and paths.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._read: dict[Callable[[InputFile], Any], Any] = {}

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"InputFile({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The last part of the path; ``pipe`` for what the shell's ``<(…)`` gives, whose number changes."""
        return "pipe" if self.path.parent.as_posix() in DESCRIPTORS else self.path.name

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return Path(self.name).stem

    @property
    def suffix(self) -> str:
        """The name's ending in lower case, with its dot."""
        return Path(self.name).suffix.lower()

    @cached_property
    def data(self) -> bytes:
        """The file's bytes. Raises :class:`InputError` naming the file."""
        data = BytesIO()  # grows with the file: a run may have less memory than the most that is read
        try:
            with self.path.open("rb") as stream:
                while data.tell() <= MOST_BYTES and (piece := stream.read(PIECE)):
                    data.write(piece)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", str(self)) from None
        if data.tell() > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES:,} bytes, the most that is read", str(self))
        return data.getvalue()

    @cached_property
    def text(self) -> str:
        """The file's text, line ends as ``\\n``. Raises :class:`InputError` naming the file."""
        try:
            return decode(self.data).replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise InputError(f"cannot be read: is no text: {error.reason} at byte {error.start}", str(self)) from None

    def once(self, reader: Callable[[InputFile], T]) -> T:
        """Return what the reader makes of the file; it is asked once, unless it raises."""
        if reader not in self._read:
            self._read[reader] = reader(self)
        found: T = self._read[reader]
        return found

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(as_input_file)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "format": "path"}


def as_input_file(value: Any) -> InputFile:
    """Return the file of a text or a path. Raises ``ValueError`` for anything else."""
    if isinstance(value, InputFile):
        return value
    if isinstance(value, (str, Path)) and str(value) not in ("", "."):
        return InputFile(value)
    raise ValueError("must be the path of a file")
