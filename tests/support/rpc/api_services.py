"""Every gRPC service that the protos define, whoever serves it."""

import importlib
from pathlib import Path

from google.protobuf.descriptor import ServiceDescriptor

import parley.api

GENERATED = Path(parley.api.__path__[0])


def every_service() -> list[ServiceDescriptor]:
    """Return the descriptors of all services in `parley.api`."""
    names = sorted(
        ".".join(("parley.api", *path.relative_to(GENERATED).with_suffix("").parts))
        for path in GENERATED.rglob("*_service_pb2.py")
    )
    return [
        service
        for name in names
        for service in importlib.import_module(name).DESCRIPTOR.services_by_name.values()
    ]
