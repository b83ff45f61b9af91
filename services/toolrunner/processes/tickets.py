"""Verification of attach tickets: each is valid once, for its user and its process."""

from datetime import datetime

from parley.clock import Clock
from parley.identity import AttachTicket, Caller, TicketReader, Unauthenticated
from toolrunner.primitives.errors import BadTicket


class TicketVerifier:
    """Verifies tickets, each once.

    Used tickets are remembered until they expire. After a restart they are forgotten, so tickets
    that were issued before the start are refused.

    Args:
        check: Reads tickets.
        node: The name of this node in tickets: the generation of its journal.
        clock: The clock.
    """

    def __init__(self, check: TicketReader, node: str, clock: Clock) -> None:
        self._check = check
        self._node = node
        self._clock = clock
        self._opened_at = clock.now().replace(microsecond=0)
        self._spent: dict[str, datetime] = {}

    def take(self, text: str, caller: Caller, process_id: str) -> AttachTicket:
        """Verify a ticket and mark it as used.

        Args:
            text: The ticket.
            caller: The caller that presents it.
            process_id: The process to attach to, empty for that of the ticket.

        Raises:
            BadTicket: It is invalid, used, expired, or for another user, node or process.
        """
        try:
            ticket = self._check.read(text)
        except Unauthenticated as error:
            raise BadTicket from error
        if (
            caller.user is None
            or caller.user.id != ticket.user_id
            or ticket.node != self._node
            or process_id not in ("", ticket.process_id)
            or ticket.issued_at < self._opened_at
        ):
            raise BadTicket
        now = self._clock.now()
        self._spent = {id_: until for id_, until in self._spent.items() if until > now}
        if ticket.id in self._spent:
            raise BadTicket
        self._spent[ticket.id] = ticket.expires_at
        return ticket
