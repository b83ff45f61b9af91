"""The tables of a file of checkpoints."""

from typing import Final

SCHEMA: Final = """
CREATE TABLE objects (etag TEXT PRIMARY KEY, size INTEGER NOT NULL, content BLOB NOT NULL);
CREATE INDEX objects_size ON objects (size);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    chat_id TEXT NOT NULL,
    turn_id INTEGER NOT NULL,
    begun_at REAL NOT NULL,
    is_open INTEGER NOT NULL DEFAULT 0,
    is_partial INTEGER NOT NULL DEFAULT 0,
    restore_id TEXT NOT NULL DEFAULT '',
    UNIQUE (chat_id, turn_id)
);
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    turn INTEGER NOT NULL,
    path BLOB NOT NULL,
    before BLOB,
    after BLOB,
    before_etag TEXT,
    is_shared INTEGER NOT NULL
);
CREATE INDEX changes_turn ON changes (turn);
CREATE INDEX changes_path ON changes (path);
CREATE TABLE tree (
    path BLOB PRIMARY KEY,
    identity BLOB,
    entry BLOB NOT NULL,
    etag TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE scans (at REAL NOT NULL);
CREATE TABLE restores (
    restore_id TEXT PRIMARY KEY,
    chat_id TEXT NOT NULL,
    turn_id INTEGER NOT NULL,
    undoes TEXT NOT NULL,
    is_done INTEGER NOT NULL DEFAULT 0,
    planned_at REAL NOT NULL
);
CREATE TABLE steps (
    restore_id TEXT NOT NULL,
    path BLOB NOT NULL,
    found BLOB,
    target BLOB,
    found_etag TEXT,
    target_etag TEXT,
    outcome TEXT NOT NULL,
    PRIMARY KEY (restore_id, path)
) WITHOUT ROWID;
CREATE TABLE pruned (chat_id TEXT PRIMARY KEY, turn_id INTEGER NOT NULL);
INSERT INTO turns (number, chat_id, turn_id, begun_at) VALUES (0, '', 0, 0);
PRAGMA user_version = 1
"""
#: Deletes contents that nothing refers to.
DELETE_UNUSED: Final = """
DELETE FROM objects WHERE etag NOT IN (
    SELECT etag FROM tree
    UNION SELECT before_etag FROM changes WHERE before_etag IS NOT NULL
    UNION SELECT found_etag FROM steps WHERE found_etag IS NOT NULL
    UNION SELECT target_etag FROM steps WHERE target_etag IS NOT NULL
)
"""
