"""Reads the whole catalogue; keys stay sealed until a call needs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import asyncpg
import msgspec

from chatd.content.domain.agent_types import AgentType
from chatd.content.domain.instructions import InstructionSet, PinnedInstructions
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.content.domain.parts import ContextFile, Skill
from chatd.content.domain.tools import ClientTool
from chatd.content.store.client_tools import tools_from_json
from chatd.models.domain.catalogue import Catalogue, ProviderKey
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.models.store.config_version import SELECT_VERSION
from chatd.models.store.preferences import INSTALLATION, SELECT_SETTINGS, installation_of, user_of
from chatd.models.store.providers import COLUMN, TABLE
from chatd.models.store.rows import (
    KEY_COLUMNS,
    MODEL_COLUMNS,
    PROVIDER_COLUMNS,
    key_of,
    model_of,
    override_of,
    provider_of,
)
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Pool
from parley.secrets import Sealed, SecretBox
from parley.settings import Secret

# Everything, for no user: it is read by processes, and shown to users by their permissions.
# May run: process.
SELECT_PROVIDERS = f"SELECT {PROVIDER_COLUMNS} FROM chat.providers ORDER BY created_at, id"
# May run: process.
SELECT_MODELS = f"SELECT {MODEL_COLUMNS} FROM chat.models ORDER BY created_at, id"
# May run: process.
SELECT_OVERRIDES = "SELECT purpose, model_id, reasoning_effort FROM chat.model_overrides"
# May run: process.
SELECT_INSTALLATION_KEYS = f"""
    SELECT {KEY_COLUMNS}, sealed, sealed_key_id FROM chat.provider_keys
    WHERE user_id IS NULL ORDER BY position, created_at
"""

# A user's own keys, for their turns.
# May run: owner.
SELECT_USER_KEYS = f"""
    SELECT {KEY_COLUMNS}, sealed, sealed_key_id FROM chat.provider_keys
    WHERE user_id = $1 ORDER BY position, created_at
"""

# The names and descriptions of a user's skills; their texts are read when they are used.
# May run: process.
SELECT_USER_SKILLS = "SELECT name, description FROM chat.skills WHERE owner_id = $1 ORDER BY name"

# The properties of a chat that its turns depend on, beside its history; for its worker.
# May run: process.
SELECT_CHAT_FACTS = """
    SELECT c.model_id, c.reasoning_effort, c.fallback_model_id, c.mode,
        c.client_tools::text AS client_tools,
        coalesce(c.workspace_id, r.workspace_id) AS workspace_id, c.mcp_server_ids,
        CASE WHEN c.parent_chat_id IS NULL THEN '{}'::uuid[] ELSE ARRAY(
            WITH RECURSIVE above AS (
                SELECT c.parent_chat_id AS id, 1 AS distance
                UNION ALL
                SELECT a.parent_chat_id, distance + 1
                FROM above JOIN chat.chats a ON a.id = above.id
                WHERE a.parent_chat_id IS NOT NULL)
            SELECT id FROM above ORDER BY distance) END AS ancestor_ids,
        w.id IS NOT NULL AS has_scratch, NOT c.is_unattended AS is_attended,
        EXISTS (SELECT 1 FROM chat.chats child WHERE child.root_chat_id = c.id
            AND child.id <> c.id) AS has_children,
        i.version AS instructions_version, i.digest AS instructions_digest,
        i.files::text AS instruction_files, i.skills::text AS skills,
        i.agent_types::text AS agent_types, c.instructions_drifted, c.orders::text AS orders
    FROM chat.chats c JOIN chat.chats r ON r.id = c.root_chat_id
    LEFT JOIN chat.workspaces w ON w.id = r.id
    LEFT JOIN chat.chat_instructions i ON i.chat_id = c.id WHERE c.id = $1
"""


_instruction_files = msgspec.json.Decoder(tuple[ContextFile, ...])
_skills = msgspec.json.Decoder(tuple[Skill, ...])
_agent_types = msgspec.json.Decoder(tuple[AgentType, ...])
_orders = msgspec.json.Decoder(AgentOrders)


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of keys: sealed ones that are opened when needed, and given ones."""

    sealed: Mapping[str, Sealed] = field(default_factory=dict, repr=False)
    given: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    box: SecretBox | None = field(default=None, repr=False)

    def open(self, key: ProviderKey) -> Secret:
        """Return the value of a key, for one call.

        Raises:
            SecretsError: It cannot be opened with the keyring of this process.
            KeyError: It is not among these.
        """
        if key.id in self.given:
            return self.given[key.id]
        sealed = self.sealed[key.id]
        assert self.box is not None
        plain = self.box.open(sealed, table=TABLE, column=COLUMN, row_id=key.id)
        return Secret(plain.decode())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The catalogue at one moment, with the values of the installation's keys."""

    catalogue: Catalogue
    values: KeyValues


@dataclass(frozen=True, slots=True)
class UserConfig:
    """The settings, keys and skills of a user."""

    settings: UserSettings = field(default_factory=UserSettings)
    keys: tuple[ProviderKey, ...] = ()
    values: KeyValues = field(default_factory=KeyValues)
    skills: tuple[Skill, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """The properties of a chat that its turns depend on, beside its history.

    Attributes:
        workspace_id: The workspace that was chosen for it or its root; empty for none.
        ancestor_ids: The chats that started it, the nearest first; a root has none.
        has_scratch: Whether it has a scratch workspace already.
        mcp_server_ids: The MCP servers that were chosen for it; None for the default ones.
        is_attended: Whether somebody can answer questions.
        has_children: Whether other chats have it as their root.
        instructions: The instruction files that are pinned in its prompts; None if none were read.
        fallback_model_id: The model that continues its turns; empty for the installation's, `none`
            for none.
        instructions_drifted: Whether its workspace had other files when they were compared.
        orders: What it was started with, if it is an agent.
        is_restricted: Whether a chat above it is in a mode that changes nothing; then `mode` is at
            least `explore`.
    """

    choice: ModelChoice
    mode: ChatMode
    client_tools: tuple[ClientTool, ...] = ()
    workspace_id: str = ""
    ancestor_ids: tuple[ChatId, ...] = ()
    has_scratch: bool = False
    mcp_server_ids: tuple[str, ...] | None = ()
    is_attended: bool = True
    has_children: bool = False
    instructions: PinnedInstructions | None = None
    fallback_model_id: str = ""
    instructions_drifted: bool = False
    orders: AgentOrders = NO_ORDERS
    is_restricted: bool = False

    @property
    def is_child(self) -> bool:
        """Whether another chat started it."""
        return bool(self.ancestor_ids)


class StoredCatalogue:
    """Reads the configuration in one snapshot."""

    def __init__(self, pool: Pool, box: SecretBox) -> None:
        self._pool = pool
        self._box = box

    async def version(self) -> int:
        """Return the version of the newest change."""
        version: int = await self._pool.fetchval(SELECT_VERSION)
        return version

    async def load(self) -> Snapshot:
        """Return everything that is stored, including deleted rows."""
        # One snapshot for all statements: no row refers to one that another statement lacks.
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            version = await connection.fetchval(SELECT_VERSION)
            providers = await connection.fetch(SELECT_PROVIDERS)
            keys = await connection.fetch(SELECT_INSTALLATION_KEYS)
            models = await connection.fetch(SELECT_MODELS)
            overrides = await connection.fetch(SELECT_OVERRIDES)
            settings = await connection.fetch(SELECT_SETTINGS, INSTALLATION)
        by_provider: dict[str, list[ProviderKey]] = {}
        for row in keys:
            by_provider.setdefault(str(row["provider_id"]), []).append(key_of(row))
        catalogue = Catalogue(
            providers={
                str(row["id"]): provider_of(row, tuple(by_provider.get(str(row["id"]), ())))
                for row in providers
            },
            models={str(row["id"]): model_of(row) for row in models},
            overrides={each.purpose: each for each in map(override_of, overrides)},
            settings=installation_of(settings),
            version=version,
        )
        return Snapshot(catalogue, self._values(keys))

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        keys = await self._pool.fetch(SELECT_USER_KEYS, user_id)
        settings = await self._pool.fetch(SELECT_SETTINGS, user_id)
        skills = await self._pool.fetch(SELECT_USER_SKILLS, user_id)
        return UserConfig(
            user_of(settings),
            tuple(map(key_of, keys)),
            self._values(keys),
            tuple(Skill(row["name"], row["description"]) for row in skills),
        )

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the properties of a chat that its turns depend on, with its own mode.

        Raises:
            ChatNotFound: There is no such chat.
        """
        row = await self._pool.fetchrow(SELECT_CHAT_FACTS, chat_id)
        if row is None:
            raise ChatNotFound(chat_id)
        chosen = row["mcp_server_ids"]
        return ChatFacts(
            ModelChoice(row["model_id"], ReasoningEffort(row["reasoning_effort"])),
            ChatMode(row["mode"]),
            tools_from_json(row["client_tools"]),
            "" if row["workspace_id"] is None else str(row["workspace_id"]),
            tuple(ChatId(str(each)) for each in row["ancestor_ids"]),
            row["has_scratch"],
            None if chosen is None else tuple(map(str, chosen)),
            row["is_attended"],
            row["has_children"],
            _instructions_of(row),
            row["fallback_model_id"],
            row["instructions_drifted"],
            NO_ORDERS if row["orders"] is None else _orders.decode(row["orders"]),
        )

    def _values(self, rows: list[asyncpg.Record]) -> KeyValues:
        sealed = {str(row["id"]): Sealed(row["sealed"], row["sealed_key_id"]) for row in rows}
        return KeyValues(sealed=sealed, box=self._box)


def _instructions_of(row: asyncpg.Record) -> PinnedInstructions | None:
    if row["instructions_version"] is None:
        return None
    found = InstructionSet(
        _instruction_files.decode(row["instruction_files"]),
        _skills.decode(row["skills"]),
        _agent_types.decode(row["agent_types"]),
    )
    return PinnedInstructions(row["instructions_version"], row["instructions_digest"], found)
