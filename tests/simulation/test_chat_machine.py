"""The state machine under random commands, without a database."""

from hypothesis import settings

from support.chatd.chats.chat_machine import ChatMachine

TestChatMachine = ChatMachine.TestCase
TestChatMachine.settings = settings(
    max_examples=200, stateful_step_count=60, deadline=None, database=None
)
