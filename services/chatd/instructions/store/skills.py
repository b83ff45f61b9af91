"""Personal skills in PostgreSQL; turns read their names with the settings of the user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from chatd.content.domain.skills import SKILLS_MAX, SkillText
from chatd.models.store.config_version import ConfigChanges
from chatd.primitives.domain.errors import InvalidRequest, ResourceNotFound
from chatd.primitives.domain.ids import OwnerId

RESOURCE: Final = "skill"

# May run: owner.
SELECT_SKILLS = """
    SELECT name, description, octet_length(body) AS size_bytes, updated_at FROM chat.skills
    WHERE owner_id = $1 ORDER BY name
"""

# May run: owner.
SELECT_SKILL = """
    SELECT name, description, body, octet_length(body) AS size_bytes, updated_at FROM chat.skills
    WHERE owner_id = $1 AND name = $2
"""

# Nothing is stored if the owner has as many others as may be.
# May run: owner.
UPSERT_SKILL = """
    INSERT INTO chat.skills AS skill (owner_id, name, description, body, updated_at)
    SELECT $1, $2, $3, $4, clock_timestamp()
    WHERE (SELECT count(*) FROM chat.skills other
        WHERE other.owner_id = $1 AND other.name <> $2) < $5
    ON CONFLICT (owner_id, name) DO UPDATE SET description = excluded.description,
        body = excluded.body, updated_at = excluded.updated_at
    RETURNING updated_at
"""

# May run: owner.
DELETE_SKILL = "DELETE FROM chat.skills WHERE owner_id = $1 AND name = $2 RETURNING name"


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """A personal skill; its body is empty in lists."""

    name: str
    description: str
    size_bytes: int
    updated_at: datetime
    body: str = ""


class PostgresSkills:
    """Stores the skills of users."""

    def __init__(self, changes: ConfigChanges) -> None:
        self._changes = changes

    async def skills(self, owner_id: OwnerId) -> tuple[StoredSkill, ...]:
        """Return the skills of a user, without their bodies."""
        rows = await self._changes.pool.fetch(SELECT_SKILLS, owner_id)
        return tuple(StoredSkill(**dict(row)) for row in rows)

    async def get(self, owner_id: OwnerId, name: str) -> StoredSkill:
        """Return a skill of a user.

        Raises:
            ResourceNotFound: There is none of this name.
        """
        row = await self._changes.pool.fetchrow(SELECT_SKILL, owner_id, name)
        if row is None:
            raise ResourceNotFound(RESOURCE, name)
        return StoredSkill(**dict(row))

    async def body(self, owner_id: OwnerId, name: str) -> str:
        """Return the text of a skill of a user.

        Raises:
            ResourceNotFound: There is none of this name.
        """
        return (await self.get(owner_id, name)).body

    async def set(self, owner_id: OwnerId, skill: SkillText) -> StoredSkill:
        """Store a skill in place of the one of its name.

        Raises:
            InvalidRequest: The user has as many as may be.
        """
        row = (owner_id, skill.name, skill.description, skill.body, SKILLS_MAX)
        async with self._changes.change(owner_id) as connection:
            updated_at = await connection.fetchval(UPSERT_SKILL, *row)
        if updated_at is None:
            raise InvalidRequest("name", f"is one more than {SKILLS_MAX}; delete a skill first")
        size_bytes = len(skill.body.encode())
        return StoredSkill(skill.name, skill.description, size_bytes, updated_at, skill.body)

    async def delete(self, owner_id: OwnerId, name: str) -> None:
        """Delete a skill.

        Raises:
            ResourceNotFound: There is none of this name.
        """
        async with self._changes.change(owner_id) as connection:
            gone = await connection.fetchval(DELETE_SKILL, owner_id, name)
        if gone is None:
            raise ResourceNotFound(RESOURCE, name)
