"""Conversion and validation of hooks."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from chatd.hooks.domain.hooks import TIMEOUT_MS, FailPolicy, Hook, HookEvent
from chatd.hooks.domain.ports import Delivery
from chatd.primitives.domain.errors import InvalidRequest, all_of
from parley.api.chat.v1 import hook_pb2
from parley.egress import SendFailed

FIELDS: Final = ("name", "url", "events", "tools", "timeout_ms", "fail_policy", "disabled")
_TOOL: Final = re.compile(r"[A-Za-z0-9_*-]+")

EVENTS: Final[Mapping[int, HookEvent]] = {
    hook_pb2.HookEvent.Value(f"HOOK_EVENT_{event.name}"): event for event in HookEvent
}

#: Raises SendFailed for an address that must not be used.
CheckUrl = Callable[[str], None]


def hook_with(
    hook: Hook, given: hook_pb2.Hook, changed: frozenset[str], check_url: CheckUrl
) -> Hook:
    """Return a hook with the changed fields taken from a request.

    Raises:
        InvalidRequest: Some of them are invalid.
    """
    checks: Mapping[str, tuple[str, Callable[[], Any]]] = {
        "name": ("name", lambda: _name(given.name)),
        "url": ("url", lambda: _url(given.url, check_url)),
        "events": ("events", lambda: _events(given)),
        "tools": ("tools", lambda: _tools(given)),
        "timeout_ms": ("timeout_ms", lambda: given.timeout_ms or TIMEOUT_MS),
        "fail_policy": ("fail_policy", lambda: _fail_policy(given)),
        "disabled": ("is_disabled", lambda: given.disabled),
    }
    named = [name for name in FIELDS if name in changed]
    values = all_of(checks[name][1] for name in named)
    return replace(
        hook, **{checks[name][0]: value for name, value in zip(named, values, strict=True)}
    )


def hook_to_proto(hook: Hook) -> hook_pb2.Hook:
    """Convert a hook to its proto."""
    shown = hook_pb2.Hook(
        id=hook.id,
        name=hook.name,
        url=hook.url,
        events=[_event_to_proto(event) for event in HookEvent if event in hook.events],
        tools=hook.tools,
        timeout_ms=hook.timeout_ms,
        fail_policy=hook_pb2.HookFailPolicy.Value(f"HOOK_FAIL_POLICY_{hook.fail_policy.name}"),
        disabled=hook.is_disabled,
        etag=str(hook.version),
    )
    if hook.created_at is not None:
        shown.created_at.FromDatetime(hook.created_at)
    if hook.previous_secret_until is not None:
        shown.previous_secret_until.FromDatetime(hook.previous_secret_until)
    return shown


def delivery_to_proto(delivery: Delivery) -> hook_pb2.HookDelivery:
    """Convert a delivery to its proto."""
    shown = hook_pb2.HookDelivery(
        dispatch_id=delivery.dispatch_id,
        chat_id=delivery.chat_id,
        event=_event_to_proto(delivery.event),
        tool_name=delivery.tool_name,
        outcome=hook_pb2.HookOutcome.Value(f"HOOK_OUTCOME_{delivery.outcome.name}"),
        http_status=delivery.http_status,
        problem=delivery.problem,
        duration_ms=delivery.duration_ms,
        attempts=delivery.attempts,
        notice=delivery.notice,
    )
    if delivery.created_at is not None:
        shown.created_at.FromDatetime(delivery.created_at)
    return shown


def _event_to_proto(event: HookEvent) -> "hook_pb2.HookEvent.ValueType":
    return hook_pb2.HookEvent.Value(f"HOOK_EVENT_{event.name}")


def _name(text: str) -> str:
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidRequest("hook.name", "is empty, or has line breaks or control characters")
    return name


def _url(text: str, check_url: CheckUrl) -> str:
    url = text.strip()
    try:
        check_url(url)
    except SendFailed as problem:
        raise InvalidRequest("hook.url", f"cannot be used: {problem}") from problem
    return url


def _events(given: hook_pb2.Hook) -> frozenset[HookEvent]:
    if not given.events:
        raise InvalidRequest("hook.events", f"names no event; there are {', '.join(HookEvent)}")
    return frozenset(
        all_of(
            partial(_event, event, f"hook.events[{index}]")
            for index, event in enumerate(given.events)
        )
    )


def _event(event: int, field: str) -> HookEvent:
    if event not in EVENTS:
        raise InvalidRequest(field, f"is not known; there are {', '.join(HookEvent)}")
    return EVENTS[event]


def _tools(given: hook_pb2.Hook) -> tuple[str, ...]:
    return all_of(
        partial(_tool, tool, f"hook.tools[{index}]") for index, tool in enumerate(given.tools)
    )


def _tool(tool: str, field: str) -> str:
    if not _TOOL.fullmatch(tool):
        problem = "is no name of a tool; give A-Z, a-z, 0-9, _ and -, and * for any text"
        raise InvalidRequest(field, problem)
    return tool


def _fail_policy(given: hook_pb2.Hook) -> FailPolicy:
    match given.fail_policy:
        case hook_pb2.HOOK_FAIL_POLICY_OPEN:
            return FailPolicy.OPEN
        case hook_pb2.HOOK_FAIL_POLICY_CLOSED | hook_pb2.HOOK_FAIL_POLICY_UNSPECIFIED:
            return FailPolicy.CLOSED
        case _:
            raise InvalidRequest("hook.fail_policy", "is not known; give closed or open")
