"""The state machine under random commands, without a database."""

import inspect
from typing import get_args

from hypothesis import settings

from chatd.chats.domain.commands import Command
from support.chatd.chats import call_machine, chat_machine
from support.chatd.chats.chat_machine import ChatMachine

TestChatMachine = ChatMachine.TestCase
TestChatMachine.settings = settings(
    max_examples=200, stateful_step_count=60, deadline=None, database=None
)


def test_random_commands_are_of_every_kind() -> None:
    source = inspect.getsource(call_machine) + inspect.getsource(chat_machine)
    kinds = {command.__name__ for command in get_args(Command)}
    assert {kind for kind in kinds if f"{kind}(" not in source} == set()
