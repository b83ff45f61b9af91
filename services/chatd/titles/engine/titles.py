"""Decides which titles, turn labels and summaries a chat needs, and generates them."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from chatd.chats.domain.chat import Message, Status
from chatd.chats.domain.errors import TitleUnavailable
from chatd.chats.store.creation import NewChat
from chatd.models.domain.language_model import ModelError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from chatd.titles.domain.labels import (
    FALLBACK_LABELS,
    LABEL_S,
    LABEL_TOKENS_MAX,
    TITLE_S,
    TITLE_TOKENS_MAX,
    clean_label,
    clean_title,
    label_prompt,
    later_title_prompt,
    title_prompt,
    title_source,
)
from chatd.titles.domain.summaries import (
    MESSAGES_MAX,
    SUMMARY_CALL_S,
    SUMMARY_S,
    SUMMARY_TOKENS_MAX,
    clean_summary,
    is_worth_a_summary,
    needs_summary,
    report_summary,
    summary_prompt,
    transcript_of,
)
from chatd.titles.engine.jobs import Job, JobQueue
from chatd.titles.store.title_store import ChatFacts
from chatd.turns.domain.turn import Ending, TurnEnded
from chatd.turns.engine.side_calls import Generated, SideCallRequest, SideCalls, is_demo

logger = logging.getLogger(__name__)

FIRST_HISTORY = 1
NO_LABEL = ""

#: Called with a chat, the history version of its turn, and the label of that.
Labelled = Callable[[ChatId, int, str], None]


class TitleStore(Protocol):
    """Stores titles, labels and summaries; writes return the chat's version, None if unchanged."""

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return the facts that decide what to generate for a chat; None if it is deleted."""
        ...

    async def newest(self, chat_id: ChatId, messages_max: int) -> tuple[Message, ...]:
        """Return the newest messages that users see, in order."""
        ...

    async def set_title(
        self, entry: LedgerEntry, owner: Owner, *, title: str, fallback: str
    ) -> int | None:
        """Set a title in place of the fallback, unless the chat has another title by now."""
        ...

    async def set_generated_label(self, entry: LedgerEntry, owner: Owner, label: str) -> int | None:
        """Store a generated label of a root chat's last turn, unless its history changed."""
        ...

    async def set_generated_summary(
        self, entry: LedgerEntry, owner: Owner, summary: str
    ) -> int | None:
        """Store a generated summary of a root chat, unless its history changed."""
        ...

    async def set_label(self, chat_id: ChatId, label: str, history_version: int) -> int | None:
        """Store a label of a root chat's last turn without a bill, unless its history changed."""
        ...

    async def set_report(self, chat_id: ChatId, summary: str, history_version: int) -> int | None:
        """Store a child's report as its summary, unless its history changed."""
        ...


class TitleWriter:
    """Generates titles, labels and summaries when chats are created and when their turns end.

    Args:
        side_calls: Calls the models.
        title_store: Stores the results.
        jobs: Runs the jobs in the background.
        debounce: Runs the job of an idle chat after a delay.
        bill: Called with the bill of an answer that is not stored.
        changed: Called with each chat whose title, label or summary changed, and its version.
        labelled: Called with each label that a model wrote.
    """

    def __init__(
        self,
        side_calls: SideCalls,
        title_store: TitleStore,
        jobs: JobQueue,
        *,
        debounce: Callable[[ChatId, OwnerId, Job], None],
        bill: Callable[[LedgerEntry, OwnerId], None],
        changed: Callable[[ChatId, int], None],
        labelled: Labelled = lambda *_: None,
    ) -> None:
        self._side_calls = side_calls
        self._title_store = title_store
        self._jobs = jobs
        self._debounce = debounce
        self._bill = bill
        self._changed = changed
        self._labelled = labelled

    def created(self, new: NewChat) -> None:
        """Generate a title for a chat that was created without one."""
        source = title_source(new.messages[-1].content)
        if not new.has_own_title and source:
            self._jobs.add(new.owner.id, partial(self._title, new, source))

    def ended(self, ended: TurnEnded) -> None:
        """Generate the label and summary after a turn, if its chat is idle now."""
        is_at_rest = ended.state.status is not Status.RUNNING
        if is_at_rest and not (ended.model is not None and is_demo(ended.model)):
            self._debounce(ended.state.chat_id, ended.owner.id, partial(self._note, ended))

    async def propose(self, chat_id: ChatId, owner: Owner) -> str:
        """Return a title for a chat as it is now.

        Raises:
            TitleUnavailable: No model could write one.
        """
        facts = await self._title_store.facts(chat_id)
        transcript = transcript_of(await self._title_store.newest(chat_id, MESSAGES_MAX))
        if facts is None or not transcript:
            raise TitleUnavailable(chat_id)
        side_call = SideCallRequest(
            chat_id,
            owner,
            facts.history_version,
            CallPurpose.TITLE,
            later_title_prompt(transcript),
            tokens_max=TITLE_TOKENS_MAX,
            call_s=TITLE_S,
            total_s=TITLE_S,
            is_repeated=True,
        )
        generated = await self._ask(side_call)
        if generated is None:
            raise TitleUnavailable(chat_id)
        self._bill(generated.entry, owner.id)
        title = clean_title(generated.text)
        if title is None:
            raise TitleUnavailable(chat_id)
        return title

    async def _title(self, new: NewChat, source: str) -> None:
        side_call = SideCallRequest(
            new.id,
            new.owner,
            FIRST_HISTORY,
            CallPurpose.TITLE,
            title_prompt(source),
            tokens_max=TITLE_TOKENS_MAX,
            call_s=TITLE_S,
            total_s=TITLE_S,
        )
        generated = await self._ask(side_call)
        if generated is None:
            return
        title = clean_title(generated.text)
        if title is None:
            self._rejected(side_call, generated)
            return
        version = await self._title_store.set_title(
            generated.entry, new.owner, title=title, fallback=new.title
        )
        self._tell(new.id, version)

    async def _note(self, ended: TurnEnded) -> None:
        chat_id, history_version = ended.state.chat_id, ended.state.history_version
        if ended.ending is not Ending.FINISHED:
            label = FALLBACK_LABELS.get(ended.ending, NO_LABEL)
            self._tell(chat_id, await self._title_store.set_label(chat_id, label, history_version))
            return
        facts = await self._title_store.facts(chat_id)
        if facts is None or facts.history_version != history_version:
            return
        if not facts.is_root:
            report = report_summary(ended.text)
            if report:
                version = await self._title_store.set_report(chat_id, report, history_version)
                self._tell(chat_id, version)
            return
        await self._label(ended)
        if needs_summary(has_summary=facts.has_summary, new_turns=facts.new_turns):
            await self._summarise(ended)

    async def _label(self, ended: TurnEnded) -> None:
        chat_id, history_version = ended.state.chat_id, ended.state.history_version
        side_call = SideCallRequest(
            chat_id,
            ended.owner,
            history_version,
            CallPurpose.LABEL,
            label_prompt(ended.asked, ended.text),
            tokens_max=LABEL_TOKENS_MAX,
            call_s=LABEL_S,
            total_s=LABEL_S,
            model=ended.model,
        )
        generated = await self._ask(side_call) if ended.text.strip() else None
        label = None if generated is None else clean_label(generated.text)
        if generated is not None and label is not None:
            version = await self._title_store.set_generated_label(
                generated.entry, ended.owner, label
            )
            if version is not None:
                self._labelled(chat_id, history_version, label)
        else:
            if generated is not None:
                self._rejected(side_call, generated)
            fallback = FALLBACK_LABELS[Ending.FINISHED]
            version = await self._title_store.set_label(chat_id, fallback, history_version)
        self._tell(chat_id, version)

    async def _summarise(self, ended: TurnEnded) -> None:
        chat_id = ended.state.chat_id
        transcript = transcript_of(await self._title_store.newest(chat_id, MESSAGES_MAX))
        if not is_worth_a_summary(transcript):
            return
        side_call = SideCallRequest(
            chat_id,
            ended.owner,
            ended.state.history_version,
            CallPurpose.SUMMARY,
            summary_prompt(transcript),
            tokens_max=SUMMARY_TOKENS_MAX,
            call_s=SUMMARY_CALL_S,
            total_s=SUMMARY_S,
            model=ended.model,
        )
        generated = await self._ask(side_call)
        if generated is None:
            return
        summary = clean_summary(generated.text)
        if summary is None:
            self._rejected(side_call, generated)
            return
        version = await self._title_store.set_generated_summary(
            generated.entry, ended.owner, summary
        )
        self._tell(chat_id, version)

    async def _ask(self, side_call: SideCallRequest) -> Generated | None:
        try:
            return await self._side_calls.ask(side_call)
        except ModelError as error:
            logger.info("no %s: %s", side_call.purpose, error, extra={"chat_id": side_call.chat_id})
            return None

    def _rejected(self, side_call: SideCallRequest, generated: Generated) -> None:
        """Bill an answer that breaks the rules; its text is not logged."""
        logger.info("the answer is no %s", side_call.purpose, extra={"chat_id": side_call.chat_id})
        self._bill(generated.entry, side_call.owner.id)

    def _tell(self, chat_id: ChatId, version: int | None) -> None:
        if version is not None:
            self._changed(chat_id, version)
