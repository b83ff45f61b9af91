"""Which proto services this process serves, and by what."""

from mcpgateway.runtime_servicer import RuntimeServicer
from mcpgateway.server_servicer import ServerServicer
from parley.api.mcp.v1 import (
    authorization_service_pb2,
    runtime_service_pb2,
    server_service_pb2,
)
from parley.api.mcp.v1.authorization_service_pb2_grpc import (
    McpAuthorizationServiceServicer,
    add_McpAuthorizationServiceServicer_to_server,
)
from parley.api.mcp.v1.runtime_service_pb2_grpc import add_McpRuntimeServiceServicer_to_server
from parley.api.mcp.v1.server_service_pb2_grpc import add_McpServerServiceServicer_to_server
from parley.rpc import Registration


def registrations(runtime: RuntimeServicer, servers: ServerServicer) -> tuple[Registration, ...]:
    """Return everything mcpgateway answers; authorization is not written yet and says so."""
    return (
        Registration(
            runtime_service_pb2.DESCRIPTOR.services_by_name["McpRuntimeService"],
            add_McpRuntimeServiceServicer_to_server,
            runtime,
        ),
        Registration(
            server_service_pb2.DESCRIPTOR.services_by_name["McpServerService"],
            add_McpServerServiceServicer_to_server,
            servers,
        ),
        Registration(
            authorization_service_pb2.DESCRIPTOR.services_by_name["McpAuthorizationService"],
            add_McpAuthorizationServiceServicer_to_server,
            McpAuthorizationServiceServicer(),
        ),
    )
