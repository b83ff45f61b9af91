"""Invariants of a chat database, each with one query that finds the violations.

A query returns one text column: the id of a chat, `chat/message` for a message, or the id of
another violating row. Some repeat a constraint of the schema, because a copy of the database may
lack it.
"""

from dataclasses import dataclass

from chatd.chats.domain.chat import QUEUE_LENGTH_MAX
from chatd.turns.domain.compaction import COMPACTIONS_MAX
from chatd.workers.domain import PARKING_TAKEOVERS


@dataclass(frozen=True, slots=True)
class SqlInvariant:
    """An invariant and the query that finds its violations."""

    name: str
    sentence: str
    sql: str


TREES = (
    SqlInvariant(
        "every_chat_has_an_execution",
        "A chat has the row that says how it runs.",
        """
        SELECT c.id::text FROM chat.chats c LEFT JOIN chat.chat_exec e ON e.chat_id = c.id
        WHERE e.chat_id IS NULL
        """,
    ),
    SqlInvariant(
        "every_row_has_its_chat",
        "Nothing is left of a chat that is gone, except what it cost.",
        """
        SELECT DISTINCT part.chat_id::text FROM (
            SELECT chat_id FROM chat.chat_exec UNION ALL SELECT chat_id FROM chat.chat_messages
            UNION ALL SELECT chat_id FROM chat.chat_queue
            UNION ALL SELECT chat_id FROM chat.tool_calls
            UNION ALL SELECT chat_id FROM chat.chat_partials
            UNION ALL SELECT chat_id FROM chat.client_keys
            UNION ALL SELECT chat_id FROM chat.chat_shares
            UNION ALL SELECT chat_id FROM chat.chat_files) AS part
        WHERE NOT EXISTS (SELECT 1 FROM chat.chats c WHERE c.id = part.chat_id)
        """,
    ),
    SqlInvariant(
        "families_have_one_root_and_one_owner",
        "A root is its own root; a child has the root and the owner of its parent.",
        """
        SELECT c.id::text FROM chat.chats c
        LEFT JOIN chat.chats parent ON parent.id = c.parent_chat_id
        WHERE (c.parent_chat_id IS NULL) <> (c.root_chat_id = c.id)
            OR c.parent_chat_id IS NOT NULL AND (parent.id IS NULL
                OR parent.root_chat_id <> c.root_chat_id OR parent.owner_id <> c.owner_id)
        """,
    ),
    SqlInvariant(
        "families_are_archived_as_one",
        "A child is archived exactly when its root is.",
        """
        SELECT c.id::text FROM chat.chats c JOIN chat.chat_exec mine ON mine.chat_id = c.id
        JOIN chat.chat_exec root ON root.chat_id = c.root_chat_id
        WHERE mine.archived <> root.archived
        """,
    ),
    SqlInvariant(
        "only_roots_are_shared",
        "Children are shared with their root and never by themselves.",
        """
        SELECT DISTINCT c.id::text FROM chat.chat_shares s JOIN chat.chats c ON c.id = s.chat_id
        WHERE c.parent_chat_id IS NOT NULL
        """,
    ),
    SqlInvariant(
        "pins_are_numbered_in_order",
        "The pinned chats of a user are roots, numbered 1, 2, 3 without a gap, or archived.",
        """
        SELECT id::text FROM (
            SELECT id, parent_chat_id, pin_order,
                row_number() OVER (PARTITION BY owner_id ORDER BY pin_order, id) AS place
            FROM chat.chats JOIN chat.chat_exec ON chat_id = id
            WHERE pin_order <> 0 AND NOT archived) AS pinned
        WHERE pin_order <> place OR parent_chat_id IS NOT NULL
        """,
    ),
    SqlInvariant(
        "reading_marks_are_in_the_history",
        "Nobody has read a message that was not written yet.",
        """
        SELECT c.id::text FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
        WHERE c.last_read_message_id NOT BETWEEN 0 AND e.next_message_id - 1
        """,
    ),
    SqlInvariant(
        "held_files_belong_to_the_owner",
        "A chat holds files that exist and belong to its owner.",
        """
        SELECT held.chat_id::text || '/' || held.file_id FROM chat.chat_files held
        JOIN chat.chats c ON c.id = held.chat_id LEFT JOIN chat.files f ON f.id = held.file_id
        WHERE f.owner_id IS DISTINCT FROM c.owner_id
        """,
    ),
)

STATES = (
    SqlInvariant(
        "versions_are_ordered",
        "No part of a chat changed after its newest snapshot.",
        """
        SELECT chat_id::text FROM chat.chat_exec
        WHERE greatest(history_version, queue_version, retry_version) > snapshot_version
            OR least(history_version, queue_version, retry_version) < 0
        """,
    ),
    SqlInvariant(
        "counters_are_in_range",
        "The counters of a chat are not negative; one that had an owner or a turn has an epoch.",
        """
        SELECT chat_id::text FROM chat.chat_exec
        WHERE least(generation_attempt, takeovers, compactions, turn_id, owner_epoch) < 0
            OR next_message_id < 1
            OR owner_epoch = 0 AND (turn_id > 0 OR worker_id IS NOT NULL)
        """,
    ),
    SqlInvariant(
        "chats_at_rest_have_no_episode",
        "A chat that does not run has no attempt, takeover, retry, summary or revert under way.",
        """
        SELECT chat_id::text FROM chat.chat_exec
        WHERE status NOT IN ('running', 'interrupting') AND (generation_attempt <> 0
            OR takeovers <> 0 OR retry IS NOT NULL OR is_compaction_requested
            OR revert IS NOT NULL)
        """,
    ),
    SqlInvariant(
        "owned_runs_have_an_episode",
        "A chat that runs under a worker has an attempt that the worker's writes name.",
        """
        SELECT chat_id::text FROM chat.chat_exec
        WHERE status = 'running' AND worker_id IS NOT NULL AND generation_attempt = 0
        """,
    ),
    SqlInvariant(
        "waiting_chats_owe_nothing",
        "A chat that came to rest without an error has no open calls.",
        """
        SELECT chat_id::text FROM chat.chat_exec WHERE status = 'waiting' AND pending::text <> '[]'
        """,
    ),
    SqlInvariant(
        "only_waiting_chats_expire",
        "Only a chat that waits for a client or a person has a deadline, the earliest one of its "
        "open actions.",
        """
        SELECT e.chat_id::text FROM chat.chat_exec e
        WHERE (e.status <> 'requires_action' AND e.deadline_at IS NOT NULL)
            OR (e.status = 'requires_action' AND e.deadline_at IS DISTINCT FROM coalesce(
                (SELECT min(a.deadline_at) FROM chat.chat_actions a
                    WHERE a.chat_id = e.chat_id AND a.ended_at IS NULL),
                CASE WHEN NOT EXISTS (SELECT 1 FROM chat.chat_actions a
                    WHERE a.chat_id = e.chat_id AND a.ended_at IS NULL) THEN e.deadline_at END))
        """,
    ),
    SqlInvariant(
        "open_actions_are_waited_for",
        "Every open action belongs to an open call of its chat, and the other way round.",
        """
        SELECT coalesce(a.chat_id, p.chat_id)::text || '/' || coalesce(a.id, p.id)::text
        FROM (SELECT chat_id, id FROM chat.chat_actions WHERE ended_at IS NULL) a
        FULL JOIN (
            SELECT e.chat_id,
                coalesce(call ->> 'question_id', call ->> 'execution_id')::uuid AS id
            FROM chat.chat_exec e, json_array_elements(e.pending) call
            WHERE coalesce(call ->> 'kind', 'dispatched') <> 'dispatched'
                AND NOT coalesce((call ->> 'is_recorded')::boolean, false)
                AND call ->> 'execution_id' IS NOT NULL) p
            ON p.id = a.id AND p.chat_id = a.chat_id
        WHERE a.id IS NULL OR p.id IS NULL
        """,
    ),
    SqlInvariant(
        "only_answers_are_waited_for",
        "A chat that waits for a client or a person has no open calls of its owner, which would "
        "never end, except those that a person has allowed, or has answered.",
        """
        SELECT DISTINCT e.chat_id::text FROM chat.chat_exec e, json_array_elements(e.pending) call
        WHERE e.status = 'requires_action' AND call ->> 'execution_id' IS NOT NULL
            AND coalesce(call ->> 'kind', 'dispatched') = 'dispatched'
            AND call ->> 'answer' IS NULL
            AND NOT EXISTS (SELECT 1 FROM chat.chat_actions a
                WHERE a.id = (call ->> 'execution_id')::uuid AND a.outcome = 'answered')
        """,
    ),
    SqlInvariant(
        "only_open_calls_ask",
        "A call that asks while it runs is dispatched, has no result and is not to be cancelled.",
        """
        SELECT e.chat_id::text || '/' || (call ->> 'execution_id')
        FROM chat.chat_exec e CROSS JOIN json_array_elements(e.pending) call
        LEFT JOIN chat.tool_calls t ON t.execution_id = (call ->> 'execution_id')::uuid
        LEFT JOIN chat.cancelled_calls c ON c.execution_id = t.execution_id
        WHERE call ->> 'kind' IN ('login', 'elicitation')
            AND (t.execution_id IS NULL OR t.result IS NOT NULL OR c.execution_id IS NOT NULL
                OR call ->> 'question' IS NULL OR call ->> 'question_id' IS NULL)
        """,
    ),
    SqlInvariant(
        "answers_are_stored",
        "An action that was answered says by whom, unless it waited for agents, which end by "
        "themselves; one that did not end says nothing.",
        """
        SELECT chat_id::text || '/' || id::text FROM chat.chat_actions
        WHERE (outcome = 'answered' AND kind <> 'agents') <> (ended_by <> '')
            OR (ended_at IS NULL AND (answer IS NOT NULL OR result IS NOT NULL))
        """,
    ),
    SqlInvariant(
        "takeovers_end_in_an_error",
        f"No turn goes on after {PARKING_TAKEOVERS} owners in a row died on it.",
        f"SELECT chat_id::text FROM chat.chat_exec WHERE takeovers >= {PARKING_TAKEOVERS}",
    ),
    SqlInvariant(
        "summaries_per_turn_are_bounded",
        f"A turn was summarised by itself {COMPACTIONS_MAX} times at most.",
        f"SELECT chat_id::text FROM chat.chat_exec WHERE compactions > {COMPACTIONS_MAX}",
    ),
    SqlInvariant(
        "partials_belong_to_an_episode",
        "What was kept of an unfinished answer belongs to an attempt that was begun.",
        """
        SELECT DISTINCT e.chat_id::text
        FROM chat.chat_partials p JOIN chat.chat_exec e ON e.chat_id = p.chat_id
        WHERE p.history_version > e.history_version
            OR p.history_version = e.history_version AND p.generation_attempt > e.generation_attempt
                AND e.status IN ('running', 'interrupting')
        """,
    ),
    SqlInvariant(
        "request_keys_are_used_once",
        "No request of a chat has the same key as another.",
        """
        SELECT chat_id::text || '/' || key FROM chat.client_keys
        GROUP BY chat_id, key HAVING count(*) > 1
        """,
    ),
    SqlInvariant(
        "request_keys_name_what_happened",
        "The key of a request names a snapshot and a turn that the chat has reached.",
        """
        SELECT k.chat_id::text || '/' || k.key
        FROM chat.client_keys k JOIN chat.chat_exec e ON e.chat_id = k.chat_id
        WHERE k.snapshot_version NOT BETWEEN 1 AND e.snapshot_version
            OR (k.outcome ->> 'turn_id')::bigint >= e.next_message_id
        """,
    ),
    SqlInvariant(
        "usage_is_not_negative",
        "No model call used or cost less than nothing.",
        """
        SELECT id::text FROM chat.usage
        WHERE least(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,
            cache_write_tokens, model_runtime_ms, cost_micros) < 0
        """,
    ),
    SqlInvariant(
        "costs_follow_from_prices",
        "A call cost what its tokens come to at the prices stored with it, rounded up once.",
        """
        SELECT id::text FROM chat.usage
        WHERE num_nonnulls(input_price, output_price, cache_read_price, cache_write_price) > 0
            AND cost_micros <> ceil(coalesce(input_price, 0) * input_tokens
                + coalesce(output_price, 0) * output_tokens
                + coalesce(cache_read_price, 0) * cache_read_tokens
                + coalesce(cache_write_price, 0) * cache_write_tokens)
        """,
    ),
)

MESSAGES = (
    SqlInvariant(
        "answers_are_in_the_ledger",
        "An answer that says what it used is in the ledger, once, with the same cost; an estimate "
        "may have been replaced there by what the provider reported. Answers that a fork copied "
        "are older than its chat, and in the ledger of the chat that they come from.",
        """
        SELECT m.chat_id::text || '/' || m.id
        FROM chat.chat_messages m JOIN chat.chats c ON c.id = m.chat_id
            AND m.created_at >= c.created_at LEFT JOIN (
            SELECT chat_id, message_id, count(*) AS count, max(cost_micros) AS cost_micros
            FROM chat.usage WHERE message_id IS NOT NULL GROUP BY chat_id, message_id) AS billed
            ON billed.chat_id = m.chat_id AND billed.message_id = m.id
        WHERE m.use IS NOT NULL AND (coalesce(billed.count, 0) <> 1
            OR billed.cost_micros IS DISTINCT FROM (m.use ->> 'cost_micros')::bigint
                AND NOT coalesce((m.use ->> 'is_estimate')::boolean, false))
        """,
    ),
    SqlInvariant(
        "messages_are_numbered_without_a_gap",
        "The messages of a chat, deleted ones included, have the numbers before the next one. A "
        "fork copies no deleted ones, so that only the messages written in it follow one another.",
        """
        SELECT e.chat_id::text FROM chat.chat_exec e LEFT JOIN (
            SELECT m.chat_id, count(DISTINCT m.id) AS different, count(*) AS count,
                max(m.id) AS last, count(*) FILTER (WHERE is_own) AS own,
                coalesce(max(m.id) FILTER (WHERE NOT is_own), 0) AS last_copied
            FROM chat.chat_messages m JOIN chat.chats c ON c.id = m.chat_id
            CROSS JOIN LATERAL (SELECT m.created_at >= c.created_at AS is_own) AS origin
            GROUP BY m.chat_id) AS m ON m.chat_id = e.chat_id
        WHERE coalesce(m.last, 0) <> e.next_message_id - 1 OR m.different <> m.count
            OR m.last_copied + m.own <> e.next_message_id - 1
        """,
    ),
    SqlInvariant(
        "revisions_are_in_the_history",
        "No message changed after its chat's newest history.",
        """
        SELECT m.chat_id::text || '/' || m.id
        FROM chat.chat_messages m JOIN chat.chat_exec e ON e.chat_id = m.chat_id
        WHERE m.revision NOT BETWEEN 1 AND e.history_version
        """,
    ),
    SqlInvariant(
        "live_revisions_grow",
        "A live message was written no earlier than the live one before it.",
        """
        SELECT chat_id::text || '/' || id FROM (
            SELECT chat_id, id, revision,
                lag(revision) OVER (PARTITION BY chat_id ORDER BY id) AS before
            FROM chat.chat_messages WHERE NOT is_deleted) AS live
        WHERE revision < before
        """,
    ),
    SqlInvariant(
        "turns_have_their_message",
        "The present or last turn was started by a live message of a user.",
        """
        SELECT e.chat_id::text FROM chat.chat_exec e LEFT JOIN chat.chat_messages m
            ON m.chat_id = e.chat_id AND m.id = e.turn_id AND m.role = 'user' AND NOT m.is_deleted
        WHERE e.turn_id > 0 AND m.id IS NULL
        """,
    ),
    SqlInvariant(
        "boundaries_are_summaries",
        "A prompt begins at a message that speaks to the model as a user.",
        """
        SELECT chat_id::text || '/' || id FROM chat.chat_messages
        WHERE is_compressed AND visibility = 'model' AND role <> 'user'
        """,
    ),
    SqlInvariant(
        "queues_are_counted",
        f"A chat knows how many messages wait in its queue, {QUEUE_LENGTH_MAX} at most.",
        f"""
        SELECT e.chat_id::text FROM chat.chat_exec e
        WHERE e.queue_length > {QUEUE_LENGTH_MAX} OR e.queue_length
            <> (SELECT count(*) FROM chat.chat_queue q WHERE q.chat_id = e.chat_id)
        """,
    ),
    SqlInvariant(
        "queue_places_are_different",
        "No two messages of a queue have the same place.",
        """
        SELECT chat_id::text || '/' || position FROM chat.chat_queue
        GROUP BY chat_id, position HAVING count(*) > 1
        """,
    ),
    SqlInvariant(
        "nothing_stored_holds_a_nul",
        "No stored JSON has the character that PostgreSQL's own functions refuse.",
        # Escaped backslashes are removed first, or the text \\u0000 would match as the character.
        r"""
        SELECT id FROM (
            SELECT chat_id::text || '/' || id AS id, content::text AS stored
            FROM chat.chat_messages
            UNION ALL SELECT chat_id::text || '/' || id, content::text FROM chat.chat_queue
            UNION ALL SELECT execution_id::text, result::text FROM chat.tool_calls
            UNION ALL SELECT chat_id::text, pending::text FROM chat.chat_exec) AS json
        WHERE strpos(stored, '\u0000') > 0 AND strpos(replace(stored, '\\', ''), '\u0000') > 0
        """,
    ),
    SqlInvariant(
        "results_have_an_end",
        "A dispatched call has a result exactly when it has a time at which it ended.",
        """
        SELECT execution_id::text FROM chat.tool_calls
        WHERE (result IS NULL) <> (finished_at IS NULL)
        """,
    ),
    SqlInvariant(
        "epochs_only_grow",
        "Calls were dispatched by the present owner or earlier ones, in the order of their epochs.",
        """
        SELECT execution_id::text FROM (
            SELECT t.execution_id, t.owner_epoch, e.owner_epoch AS present,
                max(t.owner_epoch) OVER (PARTITION BY t.chat_id ORDER BY t.message_id
                    GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest
            FROM chat.tool_calls t JOIN chat.chat_exec e ON e.chat_id = t.chat_id) AS dispatched
        WHERE owner_epoch < 1 OR owner_epoch > present OR owner_epoch < newest
        """,
    ),
)

SQL_INVARIANTS = (*TREES, *STATES, *MESSAGES)
