"""Limits, spending and notes about chats without a database, which count what they are asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from chatd.chats.domain.chat import Message
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import LedgerEntry
from chatd.spend.domain.limits import LimitPeriod, SpendLimit
from chatd.spend.store.limits import ChatSpending
from chatd.titles.store.title_store import ChatFacts


@dataclass(slots=True)
class InMemorySpending:
    """A ledger that knows only what each user spent, and when."""

    known: list[SpendLimit] = field(default_factory=list)
    spent: list[tuple[OwnerId, datetime, int]] = field(default_factory=list)
    groups: dict[ChatId, tuple[str, ...]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def limits(self) -> tuple[SpendLimit, ...]:
        self.asked.append("limits")
        return tuple(self.known)

    async def spent_micros(self, owner_id: OwnerId, since: datetime) -> int:
        self.asked.append("spent")
        return self._since(owner_id, since)

    async def spending_of(
        self, chat_id: ChatId, owner_id: OwnerId, since: Mapping[LimitPeriod, datetime]
    ) -> ChatSpending:
        self.asked.append("spent by period")
        spent = {period: self._since(owner_id, start) for period, start in since.items()}
        return ChatSpending(self.groups.get(chat_id, ()), spent)

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        self.asked.append("remember")
        self.groups[chat_id] = group_ids

    def _since(self, owner_id: OwnerId, start: datetime) -> int:
        return sum(micros for who, when, micros in self.spent if who == owner_id and when >= start)


@dataclass(slots=True)
class InMemoryNotes:
    """Notes about chats; a write takes effect while the history is the one it was made from."""

    known: ChatFacts = field(default_factory=lambda: ChatFacts(True, False, 3, 1))
    messages: tuple[Message, ...] = ()
    title: str = ""
    label: str = ""
    summary: str = ""
    billed: list[LedgerEntry] = field(default_factory=list)

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        return self.known

    async def newest(self, chat_id: ChatId, messages_max: int) -> tuple[Message, ...]:
        return self.messages[-messages_max:]

    async def set_title(
        self, entry: LedgerEntry, owner: Owner, *, title: str, fallback: str
    ) -> int | None:
        self.billed.append(entry)
        if self.title != fallback:
            return None
        self.title = title
        return 7

    async def set_generated_label(self, entry: LedgerEntry, owner: Owner, label: str) -> int | None:
        self.billed.append(entry)
        return await self.set_label(entry.chat_id, label, entry.history_version)

    async def set_generated_summary(
        self, entry: LedgerEntry, owner: Owner, summary: str
    ) -> int | None:
        self.billed.append(entry)
        if entry.history_version != self.known.history_version:
            return None
        self.summary = summary
        return 7

    async def set_label(self, chat_id: ChatId, label: str, history_version: int) -> int | None:
        if history_version != self.known.history_version:
            return None
        self.label = label
        return 7

    async def set_report(self, chat_id: ChatId, summary: str, history_version: int) -> int | None:
        if history_version != self.known.history_version:
            return None
        self.summary = summary
        return 7
