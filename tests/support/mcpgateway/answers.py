"""What callers of tools give along when they want no progress and answer nothing."""

from mcpgateway.client.call import Progress
from mcpgateway.client.questions import Answer, AnswerAction, Question


async def nobody(question: Question) -> Answer:
    """Answer nothing."""
    return Answer(AnswerAction.CANCEL)


def nothing(progress: Progress) -> None:
    """Ignore progress."""
