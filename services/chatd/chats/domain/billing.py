"""The ledger entries of a worker's command."""

from collections.abc import Iterable

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.commands import BillingCommand, WorkerCommand
from chatd.chats.domain.writes import AnswerPending, AppendMessages, EnterBill, Write
from chatd.primitives.domain.ids import MessageId
from chatd.spend.domain.ledger import LedgerEntry


def entered_bills(
    state: ChatState, command: WorkerCommand, writes: Iterable[Write]
) -> tuple[EnterBill, ...]:
    """Return the ledger entry for the model call of a command decided on `state`, if it has one."""
    if not isinstance(command, BillingCommand) or command.bill is None:
        return ()
    entry = LedgerEntry(
        state.chat_id,
        command.fence.history_version,
        command.fence.generation_attempt,
        command.bill,
        _answer_id(state.next_message_id, writes),
    )
    return (EnterBill(entry),)


def _answer_id(next_id: MessageId, writes: Iterable[Write]) -> MessageId | None:
    """Return the message id of the billed answer."""
    for write in writes:
        match write:
            case AnswerPending(calls):
                next_id = MessageId(next_id + len(calls))
            case AppendMessages(messages):
                for place, message in enumerate(messages):
                    if message.use is not None:
                        return MessageId(next_id + place)
                next_id = MessageId(next_id + len(messages))
            case _:
                pass
    return None
