"""Which proto services this process serves, and by what."""

from parley.api.workspace.v1 import (
    execution_service_pb2,
    file_service_pb2,
    git_service_pb2,
    host_service_pb2,
    process_service_pb2,
)
from parley.api.workspace.v1.execution_service_pb2_grpc import (
    add_ExecutionServiceServicer_to_server,
)
from parley.api.workspace.v1.file_service_pb2_grpc import (
    FileServiceServicer,
    add_FileServiceServicer_to_server,
)
from parley.api.workspace.v1.git_service_pb2_grpc import (
    GitServiceServicer,
    add_GitServiceServicer_to_server,
)
from parley.api.workspace.v1.host_service_pb2_grpc import (
    WorkspaceHostServiceServicer,
    add_WorkspaceHostServiceServicer_to_server,
)
from parley.api.workspace.v1.process_service_pb2_grpc import add_ProcessServiceServicer_to_server
from parley.rpc import Registration
from toolrunner.rpc.execution_servicer import ExecutionServicer
from toolrunner.rpc.process_servicer import ProcessServicer


def registrations(
    processes: ProcessServicer, executions: ExecutionServicer
) -> tuple[Registration, ...]:
    """Return everything a node answers; files, git and hosting say that they are not there yet."""
    return (
        Registration(
            process_service_pb2.DESCRIPTOR.services_by_name["ProcessService"],
            add_ProcessServiceServicer_to_server,
            processes,
        ),
        Registration(
            execution_service_pb2.DESCRIPTOR.services_by_name["ExecutionService"],
            add_ExecutionServiceServicer_to_server,
            executions,
        ),
        Registration(
            host_service_pb2.DESCRIPTOR.services_by_name["WorkspaceHostService"],
            add_WorkspaceHostServiceServicer_to_server,
            WorkspaceHostServiceServicer(),
        ),
        Registration(
            file_service_pb2.DESCRIPTOR.services_by_name["FileService"],
            add_FileServiceServicer_to_server,
            FileServiceServicer(),
        ),
        Registration(
            git_service_pb2.DESCRIPTOR.services_by_name["GitService"],
            add_GitServiceServicer_to_server,
            GitServiceServicer(),
        ),
    )
