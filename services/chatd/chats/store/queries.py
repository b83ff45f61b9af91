"""Statements of the engine, for chats that its worker owns or whose permission was checked.

Reads for users are in `reading` and `listing`, and include their authorisation.
"""

MESSAGE_COLUMNS = """
    id, revision, role, visibility, content::text AS content, content_version, is_compressed,
    is_deleted, created_by, created_at, use::text AS use, choice::text AS choice,
    finish_reason, origin
"""

# The live history, for prompts and streams. Changes after a revision include deleted messages, so
# that a caller can drop its copies.
# May run: checked by Ownership, process.
SELECT_HISTORY = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND revision > $2 AND (NOT is_deleted OR $2 > 0) ORDER BY id
"""

# The dispatched calls of one message, for the worker that has to find their outcome.
# May run: checked by Ownership, process.
SELECT_EXECUTIONS = """
    SELECT execution_id, tool_call_id, tool_name, executor, journal_generation, owner_epoch,
        mode, arguments_digest
    FROM chat.tool_calls WHERE chat_id = $1 AND message_id = $2 ORDER BY dispatched_at, execution_id
"""

# The queue in the order of execution.
# May run: checked by Ownership, process.
SELECT_QUEUE = """
    SELECT id, content::text AS content, created_by, created_at, choice::text AS choice, origin
    FROM chat.chat_queue WHERE chat_id = $1 ORDER BY position, id
"""

# Whether a queued message exists, and whether it is the first.
# May run: checked by Ownership, process.
SELECT_QUEUED_FACTS = """
    SELECT EXISTS (SELECT 1 FROM chat.chat_queue WHERE chat_id = $1 AND id = $2) AS is_queued,
        $2 = (SELECT id FROM chat.chat_queue WHERE chat_id = $1 ORDER BY position, id LIMIT 1)
            AS is_head
"""

# The live message that an edit names.
# May run: checked by Ownership, process.
SELECT_MESSAGE = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND id = $2 AND NOT is_deleted
"""

# What the turn of an edited message adds does not supersede the edit: an undo deletes it. A message
# that was queued while files were restored is delivered by the commit that completes the revert and
# has its version, as the deleted messages have.
REVERT_COLUMNS = """
    id, kind, message_id, restores_files, undone_id, undone_version,
    open_calls::text AS open_calls, version, report, created_at, replacement_id, deleted_version,
    CASE done.kind WHEN 'edit' THEN
        EXISTS (SELECT 1 FROM chat.chat_messages later WHERE later.chat_id = $1
            AND later.revision > done.deleted_version AND later.is_deleted)
        OR EXISTS (SELECT 1 FROM chat.chat_messages later WHERE later.chat_id = $1
            AND later.id > done.replacement_id AND later.origin NOT IN ('hook', 'system'))
    ELSE EXISTS (SELECT 1 FROM chat.chat_messages later WHERE later.chat_id = $1
        AND later.revision >= done.version AND (later.revision > done.version
            OR done.kind = 'history' AND NOT later.is_deleted)) END AS is_superseded
"""

# A completed revert of a chat.
# May run: checked by Ownership, process.
SELECT_REVERT = f"""
    SELECT {REVERT_COLUMNS} FROM chat.chat_reverts done WHERE chat_id = $1 AND id = $2
"""

# The completed reverts of a chat, the newest first.
# May run: checked by Ownership.
SELECT_REVERTS = f"""
    SELECT {REVERT_COLUMNS} FROM chat.chat_reverts done WHERE chat_id = $1
    ORDER BY version DESC LIMIT $2
"""

# Whether the model answered since the last summary.
# May run: checked by Ownership, process.
SELECT_HAS_MATERIAL = """
    SELECT EXISTS (SELECT 1 FROM chat.chat_messages
        WHERE chat_id = $1 AND role = 'assistant' AND NOT is_deleted AND NOT is_compressed
            AND id > coalesce((SELECT max(id) FROM chat.chat_messages
                WHERE chat_id = $1 AND is_compressed AND visibility = 'model'
                    AND NOT is_deleted), 0))
"""
