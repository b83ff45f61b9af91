"""Tickets at the node: each is good for one attachment, of its user, to its process."""

from datetime import datetime

from parley.clock import Clock
from parley.identity import AttachTicket, Caller, TicketReader, Unauthenticated
from toolrunner.primitives.errors import BadTicket


class TicketVerifier:
    """Takes tickets, each once.

    What was spent is remembered here for as long as it would be good. A node that starts anew has
    forgotten it, and refuses what was issued before.

    Args:
        check: Reads tickets.
        node: What this node is called in them: the generation of its journal.
        clock: Tells the time.
    """

    def __init__(self, check: TicketReader, node: str, clock: Clock) -> None:
        self._check = check
        self._node = node
        self._clock = clock
        self._opened_at = clock.now().replace(microsecond=0)
        self._spent: dict[str, datetime] = {}

    def take(self, text: str, caller: Caller, process_id: str) -> AttachTicket:
        """Spend a ticket.

        Args:
            text: The ticket.
            caller: Who shows it.
            process_id: The process that they want to attach to, empty for the ticket's.

        Raises:
            BadTicket: It is none, spent, expired, another's, or for something else.
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
