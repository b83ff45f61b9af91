"""The origin of messages that callers send."""

from chatd.content.domain.messages import MessageOrigin
from parley.identity import ServiceName
from parley.rpc import current_caller


def origin_of_caller() -> MessageOrigin:
    """Return the origin of a message that the current call sends; a request never names it.

    A session and an API key are those of a person, a service token is that of a program. What this
    service sends by itself names its origin where it is sent.
    """
    caller = current_caller()
    if caller.token_id is not None:
        return MessageOrigin.PROGRAM
    return MessageOrigin.SYSTEM if caller.service is ServiceName.CHATD else MessageOrigin.PERSON
