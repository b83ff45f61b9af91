"""The order in which a statement locks the executions of several chats, against deadlocks."""

from typing import Final

# A chat before the agents below it: a tool locks the execution of its chat and then that of an
# agent. Chats of the same depth are ordered by id. It orders the rows of `chat.chat_exec e`.
LOCK_ORDER: Final = """
    ORDER BY (
        WITH RECURSIVE above AS (
            SELECT c.parent_chat_id FROM chat.chats c WHERE c.id = e.chat_id
            UNION ALL
            SELECT c.parent_chat_id FROM above JOIN chat.chats c ON c.id = above.parent_chat_id)
        SELECT count(*) FROM above), e.chat_id
"""
