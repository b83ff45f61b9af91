"""Path parameters of requests; an invalid id is answered like one that does not exist."""

import re
from uuid import UUID

from starlette.requests import Request

from gateway.http.problems.errors import HttpProblem

CHAT_NOT_FOUND = ("CHAT_NOT_FOUND", "There is no such chat, or you may not see it.")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


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


def template_id_of(request: Request) -> str:
    """Return the template id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such template (404).
    """
    return _uuid(
        request,
        "template_id",
        "TEMPLATE_NOT_FOUND",
        "There is no such template, or you may not use it.",
    )


def secret_id_of(request: Request) -> str:
    """Return the secret id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such secret (404).
    """
    return _uuid(
        request, "secret_id", "SECRET_NOT_FOUND", "There is no such secret, or it is not yours."
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


def user_id_of(request: Request) -> str:
    """Return the user id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such user (404).
    """
    return _uuid(
        request, "user_id", "USER_NOT_FOUND", "There is no such user, or you may not see them."
    )


def group_id_of(request: Request) -> str:
    """Return the group id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such group (404).
    """
    return _uuid(
        request, "group_id", "GROUP_NOT_FOUND", "There is no such group, or you may not see it."
    )


def file_id_of(request: Request) -> str:
    """Return the file id of the path.

    Raises:
        HttpProblem: It is not an id, so there is no such file (404).
    """
    return _uuid(
        request, "file_id", "FILE_NOT_FOUND", "There is no such file, or you may not see it."
    )


def name_of(request: Request, parameter: str, resource: str) -> str:
    """Return an id that need not be a UUID, such as that of the demo.

    Raises:
        HttpProblem: It cannot be such an id (404).
    """
    text: str = request.path_params[parameter]
    if _NAME.fullmatch(text):
        return text
    raise resource_not_found(resource)


def resource_not_found(resource: str) -> HttpProblem:
    """Return the error for a resource that does not exist."""
    return HttpProblem(
        404,
        "RESOURCE_NOT_FOUND",
        f"There is no such {resource}, or you may not see it.",
        facts={"resource": resource},
    )


def _uuid(request: Request, parameter: str, code: str, detail: str) -> str:
    try:
        return str(UUID(request.path_params[parameter]))
    except ValueError:
        raise HttpProblem(404, code, detail) from None
