"""The setup of a turn, built from the configuration, its chat and its owner."""

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from chatd.content.domain.instructions import InstructionSet
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.skills import offered_skills
from chatd.content.domain.tools import ClientTool, Executor, ToolSpec
from chatd.models.domain.catalogue import Catalogue, Purpose
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.own_model_choice import root_choice
from chatd.models.domain.preferences import NO_FALLBACK, InstallationSettings
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.profile import ModelChoice, ModelProfile
from chatd.models.domain.resolution import (
    Resolved,
    clamped,
    for_purpose,
    profile_of,
    resolve,
    turn_choice,
    usable_provider,
)
from chatd.models.engine.agent_models import log_skipped
from chatd.models.store.catalogue import ChatFacts, Snapshot, UserConfig
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import CallPurpose
from chatd.turns.domain.system_prompt import Mode, SystemPrompt, default_instructions
from chatd.turns.domain.turn import TurnSetup

logger = logging.getLogger(__name__)

MODES = {
    ChatMode.ORDINARY: Mode.NORMAL,
    ChatMode.PLAN: Mode.PLAN,
    ChatMode.EXPLORE: Mode.EXPLORE,
}
# The more specific one first.
PURPOSES = {
    CallPurpose.TITLE: (Purpose.TITLE, Purpose.UTILITY),
    CallPurpose.LABEL: (Purpose.UTILITY,),
    CallPurpose.SUMMARY: (Purpose.UTILITY,),
    CallPurpose.ADVISOR: (Purpose.ADVISOR,),
}


class Configuration(Protocol):
    """The current configuration; cached while nothing changed."""

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        ...

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the properties of a chat that its turns depend on, beside its history."""
        ...


class WorkspaceTexts(Protocol):
    """Describes the workspaces of chats."""

    async def workspace_text(self, chat_id: ChatId, *, is_child: bool) -> str:
        """Return the prompt text about the workspace in which the chat's tools run."""
        ...


class Instructions(Protocol):
    """The instruction files of chats' workspaces."""

    async def for_turn(self, chat_id: ChatId, owner: Owner, facts: ChatFacts) -> InstructionSet:
        """Return the instruction files and skills of a turn."""
        ...


class ConfiguredSetups:
    """Returns the setup that is configured for a chat when its turn begins."""

    def __init__(
        self,
        configuration: Configuration,
        book: PriceBook,
        workspace_texts: WorkspaceTexts | None = None,
        instructions: Instructions | None = None,
    ) -> None:
        self._configuration = configuration
        self._book = book
        self._workspace_texts = workspace_texts
        self._instructions = instructions

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return the setup of the next turn of a chat.

        Raises:
            ModelError: The model cannot be used; the message says what to do.
        """
        snapshot = await self._configuration.current()
        user = await self._configuration.user(owner.id)
        facts = await self._configuration.chat(chat_id)
        catalogue, settings = snapshot.catalogue, snapshot.catalogue.settings
        own = {key.provider_id for key in user.keys}
        wanted = turn_choice(choice, facts.choice)
        if not facts.is_child:
            wanted = root_choice(wanted, catalogue, user.settings, own, log_skipped)
        resolved = resolve(catalogue, wanted, self._book, own)
        summariser = for_purpose(catalogue, (Purpose.COMPACTION,), self._book, own)
        if summariser is None and Purpose.COMPACTION in catalogue.overrides:
            logger.warning(
                "the model for summaries cannot be used; the chat's own summarises",
                extra={"model_id": catalogue.overrides[Purpose.COMPACTION].model_id},
            )
        model = resolved.model
        workspace_text = await self._workspace_text(chat_id, facts)
        found = await self._found(chat_id, owner, facts)
        return TurnSetup(
            model=profile_of(resolved, self._book),
            summariser=None if summariser is None else profile_of(summariser, self._book),
            threshold_percent=user.settings.threshold_percent(model.id, model.threshold_percent),
            is_final_step_compacted=settings.compact_on_final_step,
            system_prompt=SystemPrompt(
                default_instructions=default_instructions(settings),
                is_subagent=facts.is_child,
                orders=facts.orders,
                user_instructions=user.settings.custom_prompt,
                workspace_text=workspace_text,
                instruction_files=found.files,
                skills=offered_skills(user.skills, found.skills),
                mode=MODES[facts.mode],
                plan_instructions=settings.plan_mode_instructions,
                has_advisor=has_advisor(settings, facts),
            ),
            client_tools=tuple(map(_client_tool, facts.client_tools)),
            mode=facts.mode,
            ancestor_ids=facts.ancestor_ids,
            mcp_server_ids=facts.mcp_server_ids,
            workspace_id=facts.workspace_id,
            is_attended=facts.is_attended,
            fallback=self._fallback(catalogue, facts, resolved, own),
            fallback_model_id=facts.fallback_model_id,
            agent_types=found.agent_types,
        )

    def _fallback(
        self, catalogue: Catalogue, facts: ChatFacts, resolved: Resolved, own: Collection[str]
    ) -> ModelProfile | None:
        """Return the fallback model of a chat; None if there is none that can be used."""
        model_id = facts.fallback_model_id or catalogue.settings.fallback_model_id
        if model_id in ("", NO_FALLBACK, resolved.model.id):
            return None
        try:
            found = resolve(catalogue, ModelChoice(model_id, resolved.effort), self._book, own)
        except ModelError as unusable:
            logger.warning("the fallback model cannot be used: %s", unusable.message)
            return None
        return replace(profile_of(found, self._book), is_fallback=True)

    async def _found(self, chat_id: ChatId, owner: Owner, facts: ChatFacts) -> InstructionSet:
        if self._instructions is None:
            return InstructionSet()
        return await self._instructions.for_turn(chat_id, owner, facts)

    async def _workspace_text(self, chat_id: ChatId, facts: ChatFacts) -> str:
        if self._workspace_texts is None:
            return ""
        try:
            return await self._workspace_texts.workspace_text(chat_id, is_child=facts.is_child)
        except ChatError as unknown:
            # Its tools will return the same error, in more detail.
            logger.warning("the workspace of a chat cannot be determined: %s", unknown)
            return ""


class ConfiguredUtilityModels:
    """Returns the models that are configured for purposes other than the turns of chats."""

    def __init__(self, configuration: Configuration, book: PriceBook) -> None:
        self._configuration = configuration
        self._book = book

    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        """Return the model configured for a purpose; None for the chat's own.

        Where the model of the advisor cannot be used, the chat's own advises.

        Raises:
            ModelError: The configured one cannot be used.
        """
        catalogue = (await self._configuration.current()).catalogue
        user = await self._configuration.user(owner.id)
        own = {key.provider_id for key in user.keys}
        for wanted in PURPOSES.get(purpose, ()):
            override = catalogue.overrides.get(wanted)
            model = None if override is None else catalogue.models.get(override.model_id)
            if override is None or model is None or model.is_deleted:
                continue
            try:
                provider = usable_provider(catalogue, model, own)
            except ModelError:
                if purpose is not CallPurpose.ADVISOR:
                    raise
                logger.warning(
                    "the model of the advisor cannot be used; the chat's own advises",
                    extra={"model_id": model.id},
                )
                return None
            effort = clamped(override.reasoning_effort, model, self._book.find(model.name))
            return profile_of(Resolved(model, provider, effort), self._book)
        return None


def has_advisor(settings: InstallationSettings, facts: ChatFacts) -> bool:
    """Return whether the turns of a chat may ask the advisor: root chats that do not explore."""
    return settings.advisor.is_enabled and not facts.is_child and facts.mode is not ChatMode.EXPLORE


def _client_tool(tool: ClientTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.input_schema_json, Executor.CLIENT)
