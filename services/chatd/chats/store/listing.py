"""Chat lists: filters, order and page tokens.

A page begins after a position, never at an offset, so that chats added or removed above it do not
shift it. Chats that the reader may not see are filtered by the statement, so that pages are full.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from chatd.chats.domain.views import ChatView
from chatd.chats.store.codec import MARK
from chatd.chats.store.view_rows import (
    CHATS,
    HAS_UNREAD,
    OPENED,
    VIEW_COLUMNS,
    labels_to_json,
    view_of,
)
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

UNPINNED = 2**31 - 1  # After all pinned chats.


class Source(StrEnum):
    """Whose chats are listed."""

    OWN = "created_by_me"
    SHARED = "shared_with_me"
    OPENED = "opened_by_break_glass"


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of a list; all given conditions must hold.

    `owner_id` says whose chats are listed if a break-glass access opens them.
    """

    source: Source = Source.OWN
    owner_id: str = ""
    archived: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    title: str | None = None
    search: str | None = None
    has_unread: bool | None = None
    workspace_id: str = ""

    def digest(self) -> str:
        """Return a short digest of the filter, which binds a page token to it."""
        encoded = msgspec.json.encode(self, order="deterministic")
        return hashlib.sha256(encoded).hexdigest()[:16]


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The last chat of a page: the next page begins after it."""

    filter_digest: str
    rank: int
    changed_at: datetime
    chat_id: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of chats and the token of the next, empty at the end."""

    chats: tuple[ChatView, ...]
    next_token: str


# Text search covers messages of users and models, not tool results or reasoning.
TEXT_MATCHES = """
    EXISTS (SELECT 1 FROM chat.chat_messages said
        CROSS JOIN LATERAL json_array_elements(said.content) part
        WHERE said.chat_id = c.id AND NOT said.is_deleted AND said.visibility <> 'model'
            AND said.role IN ('user', 'assistant') AND said.content_version = 1
            AND part ->> 'type' = 'text' AND part ->> 'text' ILIKE $5)
"""

# $1 archived, $2 reader, $3 their groups, $4 title and $5 text patterns, $6 labels, $7 unread,
# $8 to $10 the position, $11 the length, $12 the workspace, $13 an opened owner.
LIST = f"""
    SELECT {VIEW_COLUMNS}, {{rank}} AS rank FROM {CHATS}
    WHERE c.parent_chat_id IS NULL AND {{readable}} AND e.archived = $1
        AND ($4::text IS NULL OR c.title ILIKE $4)
        AND ($5::text IS NULL OR c.title ILIKE $5 OR {TEXT_MATCHES})
        AND c.labels @> $6::text::jsonb
        AND ($7::boolean IS NULL OR {HAS_UNREAD} = $7)
        AND ($12::uuid IS NULL OR c.workspace_id = $12)
        AND ($8::integer IS NULL OR {{rank}} > $8
            OR ({{rank}} = $8 AND (e.changed_at, c.id) < ($9::timestamptz, $10::uuid)))
    ORDER BY rank, e.changed_at DESC, c.id DESC LIMIT $11
"""

# The reader's own root chats: pinned first, then the newest change.
# May run: owner.
LIST_OWN = LIST.format(
    rank=f"CASE c.pin_order WHEN 0 THEN {UNPINNED} ELSE c.pin_order END",
    readable="c.owner_id = $2 AND $3::uuid[] IS NOT NULL",
)

# Root chats of others that are shared with the reader; the owners' pins are ignored.
# May run: reader.
LIST_SHARED = LIST.format(
    rank=f"{UNPINNED}",
    readable="""c.owner_id <> $2 AND c.id IN (SELECT share.chat_id FROM chat.chat_shares share
        WHERE (share.grantee_kind = 'user' AND share.grantee_id = $2)
            OR (share.grantee_kind = 'group' AND share.grantee_id = ANY ($3::uuid[])))""",
)

# Root chats of one user, $12, for an administrator with an open access to them.
# May run: checked by OPENED.
LIST_OPENED = LIST.format(rank=f"{UNPINNED}", readable=f"c.owner_id = $13::uuid AND {OPENED}")


class Listing:
    """Lists of chats in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(self, reader: Reader, wanted: Filter, *, length: int, token: str) -> ListPage:
        """Return the page of `wanted` after `token`, the first if it is empty.

        Raises:
            InvalidRequest: The token is not from a page of this list.
        """
        at = position_of(token, wanted) if token else None
        rows = await self._pool.fetch(
            LIST_OWN
            if wanted.source is Source.OWN
            else LIST_SHARED
            if wanted.source is Source.SHARED
            else LIST_OPENED,
            wanted.archived,
            reader.id,
            reader.group_ids,
            None if wanted.title is None else containing(wanted.title),
            None if wanted.search is None else containing(wanted.search),
            labels_to_json(dict(wanted.labels)),
            wanted.has_unread,
            None if at is None else at.rank,
            None if at is None else at.changed_at,
            None if at is None else at.chat_id,
            length + 1,
            wanted.workspace_id or None,
            *((wanted.owner_id,) if wanted.source is Source.OPENED else ()),
        )
        chats = tuple(map(view_of, rows[:length]))
        if len(rows) <= length:
            return ListPage(chats, "")
        last = chats[-1]
        place = Position(
            wanted.digest(), rows[length - 1]["rank"], last.updated_at, last.state.chat_id
        )
        return ListPage(chats, token_of(place))


def containing(text: str) -> str:
    """Return an ILIKE pattern for texts that contain `text` literally."""
    literal = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    # Stored content has this character doubled.
    return f"%{literal.replace(MARK, MARK + MARK)}%"


def token_of(position: Position) -> str:
    """Return a position as an opaque token."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def position_of(token: str, wanted: Filter) -> Position:
    """Return the position of a token.

    Raises:
        InvalidRequest: It was not made for this list.
    """
    padded = token + "=" * (-len(token) % 4)
    try:
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        position = msgspec.json.decode(decoded, type=Position)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidRequest("page_token", "is not from a previous response") from error
    if position.filter_digest != wanted.digest():
        raise InvalidRequest("page_token", "belongs to another list; keep the filters as they were")
    return position
