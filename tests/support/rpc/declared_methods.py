"""A proto service made at run time, whose methods declare callers in every way tests need."""

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor

from parley.api.identity.v1 import access_pb2

PACKAGE = "parley.tests.declared.v1"
SERVICE = f"{PACKAGE}.DeclaredService"

RULES: dict[str, access_pb2.CallerRule | None] = {
    "ForServices": access_pb2.CallerRule(services=[access_pb2.SERVICE_CHATD]),
    "ForMembers": access_pb2.CallerRule(
        for_users=[access_pb2.SERVICE_GATEWAY],
        roles=[access_pb2.ROLE_OWNER, access_pb2.ROLE_MEMBER],
        scope="chats:write",
    ),
    "ForNobody": access_pb2.CallerRule(roles=[access_pb2.ROLE_OWNER]),
    "ForUnspecified": access_pb2.CallerRule(services=[access_pb2.SERVICE_UNSPECIFIED]),
    "ForUnspecifiedRole": access_pb2.CallerRule(
        for_users=[access_pb2.SERVICE_GATEWAY], roles=[access_pb2.ROLE_UNSPECIFIED]
    ),
    "Undeclared": None,
}


def declared_file() -> FileDescriptor:
    """Return the file with the service, adding it to the default pool at first."""
    file = descriptor_pb2.FileDescriptorProto(
        name="parley/tests/declared/v1/declared_service.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=[access_pb2.DESCRIPTOR.name],
        message_type=[descriptor_pb2.DescriptorProto(name="Empty")],
    )
    service = file.service.add(name="DeclaredService")
    for name, rule in RULES.items():
        method = service.method.add(
            name=name, input_type=f".{PACKAGE}.Empty", output_type=f".{PACKAGE}.Empty"
        )
        if rule is not None:
            method.options.Extensions[access_pb2.callers].CopyFrom(rule)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(file.name)
