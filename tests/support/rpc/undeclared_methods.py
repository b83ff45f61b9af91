"""Methods of protos that declare no caller."""

from collections.abc import Iterable

from google.protobuf.descriptor import FileDescriptor

from parley.identity import rule_of


def undeclared_methods(file_descriptors: Iterable[FileDescriptor]) -> tuple[str, ...]:
    """Return the methods, as "/pkg.Service/Method", that declare no caller."""
    return tuple(
        f"/{service.full_name}/{method.name}"
        for file in file_descriptors
        for service in file.services_by_name.values()
        for method in service.methods
        if rule_of(f"/{service.full_name}/{method.name}") is None
    )
