"""Handlers for callers of tools that show no progress and answer no questions."""

from mcpgateway.client.call import Progress
from mcpgateway.client.questions import Answer, AnswerAction, Question


async def cancel_question(question: Question) -> Answer:
    """Cancel a question of a tool."""
    return Answer(AnswerAction.CANCEL)


def ignore_progress(progress: Progress) -> None:
    """Ignore the progress of a tool."""
