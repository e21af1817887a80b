"""The messages of a Chakra execution trace and how a file frames them: a length (varint), then the message, repeated.

The numbers and types of the fields are those of Chakra's schema (mlcommons/chakra, schema/protobuf/et_def.proto); only
what a trace of sends and receives needs is declared, whatever else a file holds is skipped by protobuf as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

COMP, SEND, RECV, COLL = 4, 5, 6, 7  # NodeType
ORDER = 8  # what a compute node of this name is here: it orders two sends and holds nothing
ORDER_NAME = "order"
COLLECTIVE_NUMBERS = {  # CollectiveCommType
    "allreduce": 0,
    "reduce": 1,
    "allgather": 2,
    "gather": 3,
    "scatter": 4,
    "broadcast": 5,
    "alltoall": 6,
    "reduce_scatter": 7,
}
SCHEMA = "synth-transfers/1"  # of our metadata
MOST_BYTES = 2**31 - 1  # of one message: protobuf's own limit

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "synth.chakra"


def _message(file: descriptor_pb2.FileDescriptorProto, name: str, *fields: tuple[str, int, Any, bool, str]) -> None:
    message = file.message_type.add(name=name)
    for field, number, kind, repeated, of in fields:
        label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
        added = message.field.add(name=field, number=number, type=kind, label=label)
        if of:
            added.type_name = f".{_PACKAGE}.{of}"
        if name == "AttributeProto" and number > 2:
            added.oneof_index = 0
    if name == "AttributeProto":
        message.oneof_decl.add(name="value")


def _classes() -> Any:
    """The message classes, made at run time in a pool of their own (Chakra's may be loaded beside them)."""
    file = descriptor_pb2.FileDescriptorProto(name="synth_chakra.proto", package=_PACKAGE, syntax="proto3")
    text, i32, i64 = _FIELD.TYPE_STRING, _FIELD.TYPE_INT32, _FIELD.TYPE_INT64
    u32, u64, flag, message = _FIELD.TYPE_UINT32, _FIELD.TYPE_UINT64, _FIELD.TYPE_BOOL, _FIELD.TYPE_MESSAGE
    _message(file, "Int64List", ("values", 1, i64, True, ""))
    _message(
        file,
        "AttributeProto",
        ("name", 1, text, False, ""),
        ("doc_string", 2, text, False, ""),
        ("int32_val", 7, i32, False, ""),
        ("int64_val", 9, i64, False, ""),
        ("int64_list", 10, message, False, "Int64List"),
        ("uint32_val", 11, u32, False, ""),
        ("uint64_val", 13, u64, False, ""),
        ("bool_val", 27, flag, False, ""),
        ("string_val", 29, text, False, ""),
    )
    _message(file, "GlobalMetadata", ("version", 1, text, False, ""), ("attr", 2, message, True, "AttributeProto"))
    _message(
        file,
        "Node",
        ("id", 1, u64, False, ""),
        ("name", 2, text, False, ""),
        ("type", 3, i32, False, ""),  # an enumeration: the same on the wire
        ("ctrl_deps", 4, u64, True, ""),
        ("data_deps", 5, u64, True, ""),
        ("duration_micros", 7, u64, False, ""),
        ("attr", 10, message, True, "AttributeProto"),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles([file.name], pool)


_MADE = _classes()
GlobalMetadata: Any = _MADE[f"{_PACKAGE}.GlobalMetadata"]
Node: Any = _MADE[f"{_PACKAGE}.Node"]


def write_message(stream: BinaryIO, message: Any) -> None:
    """One message behind its length."""
    data = message.SerializeToString()
    length = len(data)
    head = bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    stream.write(bytes(head) + data)


def read_messages(stream: BinaryIO, size: int) -> Iterator[Any]:
    """The metadata, then the nodes of a file of ``size`` bytes, one at a time. Raises ``ValueError`` that says which
    message (the metadata is 0) is cut off or is none."""
    number, place = 0, 0
    while place < size:
        length, digits = 0, 0
        while True:
            byte = stream.read(1)
            if not byte or digits == 5:
                raise ValueError(f"message {number} at byte {place}: its length is cut off or too long")
            length |= (byte[0] & 127) << 7 * digits
            digits += 1
            if byte[0] < 128:
                break
        if length > min(size - place - digits, MOST_BYTES):
            raise ValueError(f"message {number} at byte {place}: {length} bytes long, but the file ends before")
        message = (GlobalMetadata if number == 0 else Node)()
        try:
            message.ParseFromString(stream.read(length))
        except DecodeError:
            kind = "GlobalMetadata" if number == 0 else "Node"
            raise ValueError(f"message {number} at byte {place} is no {kind} of Chakra's schema") from None
        yield message
        place += digits + length
        number += 1
