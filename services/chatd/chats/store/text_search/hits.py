"""Searches in titles and messages; every statement includes the authorisation.

Hits come newest first. A page begins after a position, never at an offset.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
import msgspec

from chatd.chats.store.codec import original_text
from chatd.chats.store.text_search.index import IS_SEARCHED, WRITTEN
from chatd.chats.store.view_rows import CHATS, READABLE
from chatd.content.domain.messages import Role
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

# Characters of an excerpt, and how many of them precede the first word that was found.
EXCERPT_CHARACTERS = 240
CONTEXT_CHARACTERS = 60
# A word of a query as PostgreSQL prints it; quotes inside of it are doubled.
_WORD = re.compile(r"(!?)'((?:[^']|'')*)'")
_EXCLUDED_PHRASE = re.compile(r"!\([^)]*\)")

# $1 the query, $2 the reader, $3 their groups, $4 the chat, $5 to $7 the position, $8 the length.
# The last word is taken for a beginning.
ASKED = """
    asked AS MATERIALIZED (
        SELECT words.query, words.query && quote_literal(' ' || $2::uuid)::tsquery AS own
        FROM (SELECT (plain.query::text || CASE WHEN right(plain.query::text, 1) = chr(39)
            THEN ':*' ELSE '' END)::tsquery AS query
            FROM (SELECT websearch_to_tsquery('simple', $1) AS query) plain) words)
"""

HIT = f"""
    SELECT c.id AS chat_id, c.root_chat_id, c.owner_id, c.title, e.archived, said.id AS message_id,
        said.role, said.created_at AS at
    FROM asked JOIN chat.message_words w ON {{matches}}
    JOIN chat.chat_messages said ON said.chat_id = w.chat_id AND said.id = w.message_id
    JOIN {CHATS} ON c.id = said.chat_id
    WHERE {{readable}} AND {IS_SEARCHED} AND ($4::uuid IS NULL OR c.id = $4)
        AND ($5::timestamptz IS NULL OR (said.created_at, c.id, said.id) < ($5, $6::uuid, $7))
    ORDER BY said.created_at DESC, c.id DESC, said.id DESC LIMIT $8
"""
SHARED = """
    c.root_chat_id IN (SELECT share.chat_id FROM chat.chat_shares share
        WHERE (share.grantee_kind = 'user' AND share.grantee_id = $2)
            OR (share.grantee_kind = 'group' AND share.grantee_id = ANY ($3::uuid[])))
"""

# Own messages are found by the index alone; of others the messages of shared chats are looked at.
# May run: reader.
SEARCH = f"""
    WITH {ASKED},
    own AS ({HIT.format(matches="w.words @@ asked.own", readable="c.owner_id = $2")}),
    shared AS (
        {
    HIT.format(
        matches="w.words @@ asked.query AND w.chat_id IN ("
        f"SELECT c.id FROM chat.chats c WHERE {SHARED})",
        readable=f"c.owner_id <> $2 AND {READABLE}",
    )
}),
    titles AS (
        SELECT c.id AS chat_id, c.root_chat_id, c.owner_id, c.title, e.archived, 0::bigint,
            NULL::text, e.changed_at
        FROM {CHATS}, asked
        WHERE (c.owner_id = $2 OR {SHARED}) AND c.parent_chat_id IS NULL AND $4::uuid IS NULL
            AND to_tsvector('simple', c.title) @@ asked.query
            AND ($5::timestamptz IS NULL OR (e.changed_at, c.id, 0) < ($5, $6::uuid, $7))
        ORDER BY e.changed_at DESC, c.id DESC LIMIT $8),
    hits AS (
        SELECT * FROM own UNION ALL SELECT * FROM shared UNION ALL SELECT * FROM titles
        ORDER BY at DESC, chat_id DESC, message_id DESC LIMIT $8)
    SELECT hits.*, excerpt.*
    FROM hits CROSS JOIN LATERAL (
        SELECT coalesce((SELECT text.text FROM chat.chat_messages said
            CROSS JOIN LATERAL ({WRITTEN}) AS text (text)
            WHERE said.chat_id = hits.chat_id AND said.id = hits.message_id), hits.title) AS text
        ) AS whole
    CROSS JOIN LATERAL (
        SELECT coalesce(min(nullif(strpos(lower(whole.text), word), 0)), 1) AS place
        FROM unnest($9::text[]) AS word) AS first
    CROSS JOIN LATERAL (
        SELECT substr(whole.text, greatest(1, first.place - {CONTEXT_CHARACTERS}),
                {EXCERPT_CHARACTERS}) AS excerpt,
            first.place > {CONTEXT_CHARACTERS} + 1 AS is_cut_before,
            length(whole.text) >= greatest(1, first.place - {CONTEXT_CHARACTERS})
                + {EXCERPT_CHARACTERS} AS is_cut_after) AS excerpt
    ORDER BY at DESC, chat_id DESC, message_id DESC
"""

# The words of a query in their normal form, with operators.
# May run: no-rows.
PARSE = "SELECT websearch_to_tsquery('simple', $1)::text"


@dataclass(frozen=True, slots=True)
class Hit:
    """A message with the words; without an id and a role, a title.

    Attributes:
        excerpt: Pieces of the text, each with whether it is a word that was searched for.
    """

    chat_id: ChatId
    root_chat_id: ChatId
    owner_id: OwnerId
    title: str
    is_archived: bool
    message_id: MessageId | None
    role: Role | None
    at: datetime
    excerpt: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class HitPage:
    """A page of hits and the token of the next, empty at the end."""

    hits: tuple[Hit, ...]
    next_token: str


class HitPosition(msgspec.Struct, frozen=True, array_like=True):
    """The last hit of a page: the next page begins after it."""

    search_digest: str
    at: datetime
    chat_id: str
    message_id: int


class Search:
    """Searches in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(
        self, reader: Reader, query: str, *, chat_id: str, length: int, token: str
    ) -> HitPage:
        """Return the page of hits after `token`, the first if it is empty.

        Raises:
            InvalidRequest: The query has no words, or the token is not from a page of this search.
        """
        digest = hashlib.sha256(msgspec.json.encode((query, chat_id))).hexdigest()[:16]
        at = _position_of(token, digest) if token else None
        parsed: str = await self._pool.fetchval(PARSE, query)
        if not parsed:
            raise InvalidRequest("query", "has no words; write letters or digits")
        words = wanted_words(parsed)
        rows = await self._pool.fetch(
            SEARCH,
            query,
            reader.id,
            reader.group_ids,
            chat_id or None,
            None if at is None else at.at,
            None if at is None else at.chat_id,
            None if at is None else at.message_id,
            length + 1,
            words,
        )
        hits = tuple(_hit_of(row, words) for row in rows[:length])
        if len(rows) <= length:
            return HitPage(hits, "")
        last = hits[-1]
        place = HitPosition(digest, last.at, last.chat_id, last.message_id or 0)
        encoded = base64.urlsafe_b64encode(msgspec.json.encode(place))
        return HitPage(hits, encoded.decode().rstrip("="))


def wanted_words(parsed: str) -> tuple[str, ...]:
    """Return the words of a parsed query that a hit may contain, without those that it must not."""
    wanted = _WORD.findall(_EXCLUDED_PHRASE.sub("", parsed))
    return tuple(word.replace("''", "'") for is_excluded, word in wanted if not is_excluded)


def excerpt_of(text: str, words: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Return the pieces of a text, each with whether it is a word that was searched for."""
    if not words:
        return ((original_text(text), False),)
    found = re.compile(
        r"\b(?:" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + ")",
        re.IGNORECASE,
    )
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in found.finditer(text):
        pieces += [(text[end : match.start()], False), (match.group(), True)]
        end = match.end()
    pieces.append((text[end:], False))
    return tuple((original_text(piece), is_match) for piece, is_match in pieces if piece)


def _hit_of(row: asyncpg.Record, words: Sequence[str]) -> Hit:
    before, after = "…" * row["is_cut_before"], "…" * row["is_cut_after"]
    return Hit(
        ChatId(str(row["chat_id"])),
        ChatId(str(row["root_chat_id"])),
        OwnerId(str(row["owner_id"])),
        row["title"],
        row["archived"],
        MessageId(row["message_id"]) if row["message_id"] else None,
        None if row["role"] is None else Role(row["role"]),
        row["at"],
        excerpt_of(f"{before}{row['excerpt']}{after}", words),
    )


def _position_of(token: str, digest: str) -> HitPosition:
    padded = token + "=" * (-len(token) % 4)
    try:
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        position = msgspec.json.decode(decoded, type=HitPosition)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidRequest("page_token", "is not from a previous response") from error
    if position.search_digest != digest:
        raise InvalidRequest("page_token", "belongs to another search; keep q and chat_id")
    return position
