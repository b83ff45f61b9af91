"""Which servers a chat uses."""

from collections.abc import Sequence

from mcpgateway.servers.access import Selection, select
from mcpgateway.servers.domain import ChatContext, Reason, Server
from support.mcpgateway.values import a_server

CHAT = ChatContext("chat", "chat")
KNOWN = {
    "a": a_server("a", slug="a"),
    "b": a_server("b", slug="b"),
    "off": a_server("off", slug="off", is_enabled=False),
    "forced": a_server("forced", slug="forced"),
    "planned": a_server("planned", slug="planned", allow_in_plan_mode=True),
}


def selected(
    *,
    requested: Sequence[str] | None = None,
    stored: Sequence[str] = (),
    known: dict[str, Server] = KNOWN,
    forced: Sequence[str] = ("forced",),
    context: ChatContext = CHAT,
) -> Selection:
    return select(context, requested=requested, stored=stored, known=known, forced=forced)


def test_nothing_requested_leaves_what_is_stored() -> None:
    assert selected(stored=["a"]) == Selection(("a",), ("a", "forced"), ("forced",), ())


def test_an_empty_request_clears_all_but_forced_servers() -> None:
    assert selected(requested=[], stored=["a"]) == Selection((), ("forced",), ("forced",), ())


def test_repeated_ids_count_once_and_order_is_kept() -> None:
    assert selected(requested=["b", "a", "b"], forced=()) == Selection(
        ("b", "a"), ("b", "a"), (), ()
    )


def test_new_servers_must_exist_and_be_enabled() -> None:
    assert selected(requested=["a", "off", "gone"], forced=()) == Selection(
        ("a",),
        ("a",),
        (),
        (("off", Reason.SERVER_DISABLED), ("gone", Reason.SERVER_NOT_FOUND)),
    )


def test_a_stored_server_that_was_switched_off_is_kept_but_not_used() -> None:
    assert selected(requested=["off", "a"], stored=["off"], forced=()) == Selection(
        ("off", "a"), ("a",), (), ()
    )


def test_a_root_chat_in_plan_mode_uses_approved_servers_only() -> None:
    context = ChatContext("chat", "chat", is_plan_mode=True)

    assert selected(stored=["a", "planned"], context=context) == Selection(
        ("a", "planned"), ("planned",), (), ()
    )


def test_a_subagent_in_plan_mode_uses_none() -> None:
    context = ChatContext("child", "chat", is_plan_mode=True)

    assert selected(stored=["planned"], context=context) == Selection(("planned",), (), (), ())
