"""The comments of protos, by the names of what they describe."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generate_protos import PROTOS, run_protoc
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet


def comments() -> Mapping[str, str]:
    """Return the comments of all declarations, by full name; enum values by that of their enum."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "protos.binpb"
        run_protoc("--include_source_info", f"--descriptor_set_out={output}", *sources)
        described = FileDescriptorSet.FromString(output.read_bytes())
    return {name: text for file in described.file for name, text in _comments(file)}


def _comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    for location in file.source_code_info.location:
        text = " ".join(location.leading_comments.split())
        name = _name(file, list(location.path))
        if text and name:
            yield f"{file.package}.{name}", text


def _name(file: FileDescriptorProto, path: list[int]) -> str:
    """Return the name of a declaration from its path in the descriptor; empty for others."""
    names: list[str] = []
    holder: Any = file
    while path:
        number, path = path[0], path[1:]
        kind = holder.DESCRIPTOR.fields_by_number[number]
        if not path or not kind.is_repeated or kind.message_type is None:
            return ""
        holder, path = getattr(holder, kind.name)[path[0]], path[1:]
        if not hasattr(holder, "name"):
            return ""
        names.append(holder.name)
    return ".".join(names)
