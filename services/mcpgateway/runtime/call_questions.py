"""What running calls ask, in the rows of the journal, so that any process shows and answers it."""

from typing import Final

import asyncpg
import msgspec

from mcpgateway.client.questions import Answer, Question
from parley.postgres import Database

# May run: process.
_ASK = """
    UPDATE mcp.calls SET question_id = $2, question = $3, answer = NULL
    WHERE execution_id = $1 AND finished_at IS NULL
"""
# May run: service.
_ANSWER = """
    UPDATE mcp.calls SET answer = $3
    WHERE execution_id = $1 AND question_id = $2 AND answer IS NULL AND finished_at IS NULL
    RETURNING true
"""
# May run: process.
_GO_ON = """
    UPDATE mcp.calls SET question_id = NULL, question = NULL, answer = NULL
    WHERE execution_id = $1 AND question_id = $2
"""


class CallQuestions:
    """The questions of running calls; the end of a call drops its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, execution_id: str, question: Question) -> None:
        """Store what a running call asks."""
        encoded = msgspec.json.encode(question)
        await self._database.pool.execute(_ASK, execution_id, question.id, encoded)

    async def answer(self, execution_id: str, question_id: str, answer: Answer) -> bool:
        """Store an answer for the process that makes the call; return whether it was awaited."""
        encoded = msgspec.json.encode(answer)
        values = (execution_id, question_id, encoded)
        return bool(await self._database.pool.fetchval(_ANSWER, *values))

    async def go_on(self, execution_id: str, question_id: str) -> None:
        """Drop a question with its answer, because the call goes on."""
        await self._database.pool.execute(_GO_ON, execution_id, question_id)


def question_of(row: "asyncpg.Record") -> Question | None:
    """Return what a call asks, unless it is answered and about to go on."""
    if row["question"] is None or row["answer"] is not None:
        return None
    return msgspec.json.decode(row["question"], type=Question)


decode_answer: Final = msgspec.json.Decoder(Answer).decode
