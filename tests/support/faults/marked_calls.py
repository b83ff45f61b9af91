"""Calls of an MCP tool under faults: what each did is counted by the word it was called with."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from parley.client import Message, Role, ToolOutcome, ToolResult
from support.faults.delegating_server import TOOL
from support.faults.trials import Fault

CALL_S = 0.5
CALLED = re.compile(rf"^call: {TOOL} (\{{.+\}})$", re.MULTILINE)


class MarkedCalls:
    """Counts calls, and checks that none had its effect twice or has a result without one."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._counts: Counter[str] = Counter()

    async def mark(self, word: str) -> str:
        """Have an effect once, and take a moment."""
        self._counts[word] += 1
        await self._fault.lab.sleep(CALL_S)
        return word

    async def check(self) -> None:
        """Compare the results in all chats with the effects that there were."""
        row = self._fault.row
        for chat_id in self._fault.chat_ids:
            for word, result in results_of_calls(await self._fault.messages(chat_id)):
                row.counts[f"mcp_{result.outcome}"] += 1
                if self._counts[word] > 1:
                    row.double_executions += self._counts[word] - 1
                    row.problems.append(f"{chat_id}: {word} ran {self._counts[word]} times")
                if self._counts[word] == 0 and result.outcome is ToolOutcome.DONE:
                    row.problems.append(f"{chat_id}: {word} is done and never ran")


def results_of_calls(messages: Sequence[Message]) -> Iterator[tuple[str, ToolResult]]:
    """Yield the words of calls that messages of users asked for, with their results."""
    word = ""
    for message in messages:
        if message.role is Role.USER:
            called = CALLED.search(message.text)
            word = json.loads(called[1])["script"] if called else ""
        elif word:
            for part in message.content:
                if isinstance(part, ToolResult):
                    yield word, part
