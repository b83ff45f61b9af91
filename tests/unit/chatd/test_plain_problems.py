"""What is told of a failed request: our own words, never those of the transport."""

import grpc
import pytest
from grpc.aio import Metadata

from chatd.workspaces.clients.failures import plain_problem
from parley.rpc import Problem
from parley.rpc.problem import trailers

TRANSPORT = "failed to connect to all addresses; last error: unix:/var/lib/parley/t.sock: refused"


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0]])
def test_words_of_the_transport_are_not_told(code: grpc.StatusCode) -> None:
    error = grpc.aio.AioRpcError(code, Metadata(), Metadata(), TRANSPORT)
    problem = plain_problem(error)
    assert problem.reason == code.name
    assert problem.message.startswith(("it ", "the connection", "this is"))
    assert "/" not in problem.message


def test_what_a_service_says_itself_is_told() -> None:
    said = Problem(grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND", "there is no 'a' in the workspace")
    told = Metadata(*trailers(said, domain="workspace.parley"))
    error = grpc.aio.AioRpcError(said.status, Metadata(), told, said.message)
    assert plain_problem(error).message == "there is no 'a' in the workspace"
