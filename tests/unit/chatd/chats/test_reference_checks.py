"""Errors of several checks of a request, raised together."""

import pytest

from chatd.chats.rpc.reference_checks import NO_CHAT, ReferenceChecks
from chatd.content.domain.errors import FileNotFound
from chatd.models.domain.errors import NO_MODEL, ModelNotFound
from chatd.primitives.domain.errors import (
    ChatNotFound,
    CheckUnavailable,
    InvalidRequest,
    UnknownIds,
)


async def raised(error: Exception) -> str:
    raise error


async def passed() -> str:
    return "found"


WORKSPACE = UnknownIds("workspace", {"workspace_id": "names none"})
SERVERS = CheckUnavailable("MCP server")


async def test_results_of_checks_that_pass_are_returned_and_nothing_is_raised() -> None:
    checks = ReferenceChecks()
    assert await checks.run(passed(), "not found") == "found"
    assert await checks.model(passed(), "model_id", "not found") == "found"
    checks.finish()


async def test_problems_of_several_checks_are_raised_together() -> None:
    checks = ReferenceChecks()
    assert await checks.run(raised(WORKSPACE), "not found") == "not found"
    await checks.run(raised(SERVERS), "")
    await checks.model(raised(ModelNotFound("m")), "model_id", "")
    await checks.run(raised(FileNotFound("f", ["content[0].file.file_id"])), "")
    with pytest.raises(UnknownIds) as caught:
        checks.finish()
    assert caught.value.resource == "workspace or model or file"
    assert list(caught.value.problems) == ["workspace_id", "model_id", "content[0].file.file_id"]


async def test_the_only_error_is_raised_as_it_is_with_its_field() -> None:
    checks = ReferenceChecks()
    await checks.model(raised(ModelNotFound("m")), "chat.fallback_model_id", "")
    await checks.run(raised(SERVERS), "")
    with pytest.raises(ModelNotFound) as caught:
        checks.finish()
    assert (caught.value.model_id, caught.value.problems) == (
        "m",
        {"chat.fallback_model_id": NO_MODEL},
    )


async def test_ids_that_cannot_be_checked_are_reported_if_nothing_else_is_wrong() -> None:
    checks = ReferenceChecks()
    await checks.run(raised(SERVERS), "")
    await checks.run(passed(), "")
    with pytest.raises(CheckUnavailable):
        checks.finish()


async def test_faults_of_values_and_unknown_ids_are_raised_together() -> None:
    def blank() -> str:
        raise InvalidRequest("text", "is empty", ("name", "is too long"))

    checks = ReferenceChecks()
    assert checks.value(lambda: "given") == "given"
    await checks.run(raised(WORKSPACE), "")
    assert checks.value(blank) is None
    checks.refuse("cron", "never matches")
    with pytest.raises(InvalidRequest) as caught:
        checks.finish()
    assert caught.value.faults == (
        ("text", "is empty"),
        ("name", "is too long"),
        ("cron", "never matches"),
        ("workspace_id", "names none"),
    )


async def test_an_unknown_chat_is_raised_as_it_is_or_with_other_unknown_ids() -> None:
    checks = ReferenceChecks()
    await checks.chat(passed(), "chat_id")
    await checks.chat(raised(ChatNotFound("c")), "chat_id")
    with pytest.raises(ChatNotFound):
        checks.finish()
    await checks.model(raised(ModelNotFound("m")), "model_id", "")
    with pytest.raises(UnknownIds) as caught:
        checks.finish()
    assert caught.value.resource == "chat or model"
    assert caught.value.problems == {"chat_id": NO_CHAT, "model_id": NO_MODEL}
