"""Path parameters of requests; an invalid id is answered like one that does not exist."""

from uuid import UUID

from starlette.requests import Request

from gateway.http.problems.errors import HttpProblem

CHAT_NOT_FOUND = ("CHAT_NOT_FOUND", "There is no such chat, or you may not see it.")


def chat_id_of(request: Request) -> str:
    """Return the chat id of the path in canonical form, so that all processes hash it alike.

    Raises:
        HttpProblem: It is not an id, so there is no such chat (404).
    """
    return _uuid(request, "chat_id", *CHAT_NOT_FOUND)


def chat_not_found() -> HttpProblem:
    """Return the error for a chat that does not exist for this user."""
    return HttpProblem(404, *CHAT_NOT_FOUND)


def workspace_id_of(request: Request) -> str:
    """Return the workspace id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such workspace (404).
    """
    return _uuid(
        request,
        "workspace_id",
        "WORKSPACE_NOT_FOUND",
        "There is no such workspace, or you may not see it.",
    )


def process_id_of(request: Request) -> str:
    """Return the process id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such process (404).
    """
    return _uuid(
        request,
        "process_id",
        "PROCESS_NOT_FOUND",
        "There is no such process in this workspace; list them to see their ids.",
    )


def file_id_of(request: Request) -> str:
    """Return the file id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such file (404).
    """
    return _uuid(
        request, "file_id", "FILE_NOT_FOUND", "There is no such file, or you may not see it."
    )


def _uuid(request: Request, parameter: str, code: str, detail: str) -> str:
    try:
        return str(UUID(request.path_params[parameter]))
    except ValueError:
        raise HttpProblem(404, code, detail) from None
