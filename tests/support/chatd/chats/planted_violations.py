"""One violation or more for every invariant of the auditor, for the world of `audited_chats`."""

from dataclasses import dataclass

from support.chatd.chats.audited_chats import (
    ASKING,
    CHILD,
    DONE,
    EMPTY,
    FAILED,
    FILE,
    KEY,
    RUNNING,
    STRANGER,
    SUSPENDED,
    WORKER,
    execution_of,
    made_id,
)

EXEC = "UPDATE chat.chat_exec SET"
MESSAGES = "UPDATE chat.chat_messages SET"
CALLS = "UPDATE chat.tool_calls SET"
LOOK, READ, WRITE = execution_of("look"), execution_of("read"), execution_of("write")
STRAY = '{"type": "tool-result", "tool_call_id": "stray", "tool_name": "tool", \
"result_json": "{}", "outcome": "done"}'
UNREADABLE = """'[{"type": "nothing"}]'"""
HANDED = f'[{{"type": "file", "file_id": "{made_id("nowhere")}", "media_type": "text/csv"}}]'


@dataclass(frozen=True, slots=True)
class Planted:
    """Statements that break one invariant, and the id that must be found."""

    invariant: str
    offender: str
    statements: str


def without(table: str, constraint: str) -> str:
    """Return the statement after which the database accepts what it would refuse."""
    return f"ALTER TABLE chat.{table} DROP CONSTRAINT {constraint};"


def asking(chat_id: str, deadline_at: str) -> str:
    """Return the statement after which a chat waits for its client."""
    return (
        f"{EXEC} status = 'requires_action', worker_id = NULL, generation_attempt = 0,"
        f" last_error = NULL, deadline_at = {deadline_at}, changed_at = now()"
        f" WHERE chat_id = '{chat_id}'"
    )


TREES = (
    Planted(
        "every_chat_has_an_execution",
        EMPTY,
        f"DELETE FROM chat.chat_exec WHERE chat_id = '{EMPTY}'",
    ),
    Planted(
        "every_row_has_its_chat",
        EMPTY,
        "BEGIN; SET LOCAL session_replication_role = replica;"
        f"DELETE FROM chat.chats WHERE id = '{EMPTY}'; COMMIT",
    ),
    Planted(
        "families_have_one_root_and_one_owner",
        CHILD,
        f"UPDATE chat.chats SET owner_id = '{STRANGER}' WHERE id = '{CHILD}'",
    ),
    Planted(
        "families_are_archived_as_one",
        CHILD,
        f"{EXEC} archived = true WHERE chat_id = '{CHILD}'",
    ),
    Planted(
        "only_roots_are_shared",
        CHILD,
        f"INSERT INTO chat.chat_shares VALUES ('{CHILD}', 'user', '{STRANGER}', now())",
    ),
    Planted(
        "pins_are_numbered_in_order",
        EMPTY,
        f"UPDATE chat.chats SET pin_order = 3 WHERE id = '{EMPTY}'",
    ),
    Planted(
        "reading_marks_are_in_the_history",
        DONE,
        f"UPDATE chat.chats SET last_read_message_id = 5 WHERE id = '{DONE}'",
    ),
    Planted(
        "held_files_belong_to_the_owner",
        f"{DONE}/{FILE}",
        f"UPDATE chat.files SET owner_id = '{STRANGER}'",
    ),
)

STATES = (
    Planted(
        "versions_are_ordered",
        EMPTY,
        without("chat_exec", "chat_exec_versions_ordered")
        + f"{EXEC} retry_version = 9 WHERE chat_id = '{EMPTY}'",
    ),
    Planted(
        "counters_are_in_range",
        EMPTY,
        without("chat_exec", "chat_exec_counts_positive")
        + f"{EXEC} compactions = -1 WHERE chat_id = '{EMPTY}'",
    ),
    Planted(
        "counters_are_in_range",
        FAILED,
        f"{EXEC} owner_epoch = 0 WHERE chat_id = '{FAILED}'",
    ),
    Planted(
        "chats_at_rest_have_no_episode",
        EMPTY,
        f"{EXEC} generation_attempt = 1 WHERE chat_id = '{EMPTY}'",
    ),
    Planted(
        "owned_runs_have_an_episode",
        RUNNING,
        f"{EXEC} generation_attempt = 0 WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "waiting_chats_owe_nothing",
        FAILED,
        f"{EXEC} status = 'waiting', last_error = NULL WHERE chat_id = '{FAILED}'",
    ),
    Planted(
        "only_waiting_chats_expire",
        FAILED,
        without("chat_exec", "chat_exec_only_actions_expire")
        + f"{EXEC} deadline_at = now() WHERE chat_id = '{FAILED}'",
    ),
    Planted(
        "only_waiting_chats_expire",
        ASKING,
        f"{EXEC} deadline_at = deadline_at + interval '1 hour' WHERE chat_id = '{ASKING}'",
    ),
    Planted(
        "open_actions_are_waited_for",
        f"{ASKING}/{execution_of('ask of asking')}",
        f"DELETE FROM chat.chat_actions WHERE id = '{execution_of('ask of asking')}'",
    ),
    Planted(
        "open_actions_are_waited_for",
        f"{ASKING}/{execution_of('question')}",
        "UPDATE chat.chat_actions SET ended_at = NULL, outcome = NULL, ended_by = '',"
        f" answer = NULL, result = NULL WHERE id = '{execution_of('question')}'",
    ),
    Planted("only_answers_are_waited_for", RUNNING, asking(RUNNING, "NULL")),
    Planted(
        "only_open_calls_ask",
        f"{SUSPENDED}/{execution_of('search')}",
        "INSERT INTO chat.cancelled_calls SELECT execution_id, chat_id, chat_id, 'member',"
        " tool_call_id, tool_name, executor, journal_generation, 1, now(), now()"
        f" FROM chat.tool_calls WHERE execution_id = '{execution_of('search')}'",
    ),
    Planted(
        "answers_are_stored",
        f"{ASKING}/{execution_of('question')}",
        f"UPDATE chat.chat_actions SET ended_by = '' WHERE id = '{execution_of('question')}'",
    ),
    Planted(
        "takeovers_end_in_an_error",
        RUNNING,
        f"{EXEC} takeovers = 4 WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "summaries_per_turn_are_bounded",
        RUNNING,
        f"{EXEC} compactions = 4 WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "partials_belong_to_an_episode",
        RUNNING,
        "UPDATE chat.chat_partials SET history_version = 9",
    ),
    Planted(
        "partials_belong_to_an_episode",
        RUNNING,
        "UPDATE chat.chat_partials p SET history_version = e.history_version,"
        " generation_attempt = 2 FROM chat.chat_exec e WHERE e.chat_id = p.chat_id",
    ),
    Planted(
        "request_keys_are_used_once",
        f"{RUNNING}/{KEY}",
        without("client_keys", "client_keys_pkey")
        + "INSERT INTO chat.client_keys SELECT * FROM chat.client_keys",
    ),
    Planted(
        "request_keys_name_what_happened",
        f"{RUNNING}/{KEY}",
        "UPDATE chat.client_keys SET snapshot_version = 99",
    ),
    Planted(
        "usage_is_not_negative",
        made_id("usage"),
        without("usage", "usage_cost_positive")
        + f"UPDATE chat.usage SET cost_micros = -1 WHERE id = '{made_id('usage')}'",
    ),
    Planted(
        "costs_follow_from_prices",
        made_id("usage"),
        f"UPDATE chat.usage SET input_price = 2, output_price = 4 WHERE id = '{made_id('usage')}'",
    ),
)

MESSAGE_ROWS = (
    Planted(
        "answers_are_in_the_ledger",
        f"{DONE}/4",
        "DELETE FROM chat.usage WHERE message_id IS NOT NULL",
    ),
    Planted(
        "answers_are_in_the_ledger",
        f"{DONE}/4",
        "UPDATE chat.usage SET cost_micros = NULL WHERE message_id IS NOT NULL",
    ),
    Planted(
        "answers_are_in_the_ledger",
        f"{DONE}/4",
        "UPDATE chat.usage u SET message_id = 4 WHERE message_id IS NULL",
    ),
    Planted(
        "messages_are_numbered_without_a_gap",
        DONE,
        f"{EXEC} next_message_id = 6 WHERE chat_id = '{DONE}'",
    ),
    Planted(
        "messages_are_numbered_without_a_gap",
        DONE,
        f"{MESSAGES} id = 7 WHERE chat_id = '{DONE}' AND id = 4;"
        "UPDATE chat.usage SET message_id = 7 WHERE message_id = 4",
    ),
    Planted(
        "revisions_are_in_the_history",
        f"{DONE}/4",
        f"{MESSAGES} revision = 99 WHERE chat_id = '{DONE}' AND id = 4",
    ),
    Planted(
        "live_revisions_grow",
        f"{DONE}/3",
        f"{MESSAGES} revision = 1 WHERE chat_id = '{DONE}' AND id = 3",
    ),
    Planted(
        "turns_have_their_message",
        DONE,
        f"{EXEC} turn_id = 2 WHERE chat_id = '{DONE}'",
    ),
    Planted(
        "boundaries_are_summaries",
        f"{DONE}/4",
        f"{MESSAGES} is_compressed = true, visibility = 'model'"
        f" WHERE chat_id = '{DONE}' AND id = 4",
    ),
    Planted(
        "queues_are_counted",
        RUNNING,
        f"{EXEC} queue_length = 1 WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "queue_places_are_different",
        f"{RUNNING}/7",
        "UPDATE chat.chat_queue SET position = 7",
    ),
    Planted(
        "nothing_stored_holds_a_nul",
        f"{FAILED}/1",
        rf"""{MESSAGES} content = '[{{"type": "text", "text": "\\\u0000"}}]'"""
        f" WHERE chat_id = '{FAILED}' AND id = 1",
    ),
    Planted(
        "results_have_an_end",
        LOOK,
        without("tool_calls", "tool_calls_result_has_a_time")
        + f"{CALLS} finished_at = NULL WHERE execution_id = '{LOOK}'",
    ),
    Planted(
        "epochs_only_grow",
        LOOK,
        f"{CALLS} owner_epoch = 99 WHERE execution_id = '{LOOK}'",
    ),
)

HISTORIES = (
    Planted(
        "stored_values_can_be_read",
        f"{DONE}/4",
        f"{MESSAGES} content = {UNREADABLE} WHERE chat_id = '{DONE}' AND id = 4",
    ),
    Planted(
        "stored_values_can_be_read",
        f"{RUNNING}/{made_id('queued 2')}",
        f"UPDATE chat.chat_queue SET content = {UNREADABLE} WHERE id = '{made_id('queued 2')}'",
    ),
    Planted(
        "stored_values_can_be_read",
        LOOK,
        f"""{CALLS} result = '{{"type": "text", "text": ""}}' WHERE execution_id = '{LOOK}'""",
    ),
    Planted(
        "stored_values_can_be_read",
        EMPTY,
        without("chat_exec", "chat_exec_status_known")
        + f"{EXEC} status = 'asleep' WHERE chat_id = '{EMPTY}'",
    ),
    Planted(
        "states_are_possible",
        DONE,
        without("chat_exec", "chat_exec_only_runners_are_owned")
        + f"{EXEC} worker_id = '{WORKER}' WHERE chat_id = '{DONE}'",
    ),
    Planted(
        "states_are_possible",
        FAILED,
        without("chat_exec", "chat_exec_error_is_told")
        + f"{EXEC} last_error = NULL WHERE chat_id = '{FAILED}'",
    ),
    Planted(
        "results_have_a_call",
        f"{DONE}/3/stray",
        f"{MESSAGES} content = json_build_array(content -> 0, '{STRAY}'::json)"
        f" WHERE chat_id = '{DONE}' AND id = 3",
    ),
    Planted(
        "calls_have_one_result",
        f"{DONE}/3/look",
        f"{MESSAGES} content = json_build_array(content -> 0, content -> 0)"
        f" WHERE chat_id = '{DONE}' AND id = 3",
    ),
    Planted(
        "calls_are_answered_at_once",
        f"{DONE}/2/look",
        f"{MESSAGES} content = '[]' WHERE chat_id = '{DONE}' AND id = 3",
    ),
    Planted(
        "open_calls_are_pending",
        FAILED,
        f"{EXEC} pending = '[]' WHERE chat_id = '{FAILED}';"
        "UPDATE chat.chat_actions SET ended_at = now(), outcome = 'cancelled'"
        f" WHERE chat_id = '{FAILED}'",
    ),
    Planted(
        "pending_calls_are_dispatched",
        WRITE,
        f"DELETE FROM chat.tool_calls WHERE execution_id = '{WRITE}'",
    ),
    Planted(
        "pending_calls_are_dispatched",
        READ,
        f"{CALLS} result = NULL, finished_at = NULL WHERE execution_id = '{READ}'",
    ),
    Planted(
        "dispatches_are_calls_of_an_answer",
        LOOK,
        f"{CALLS} tool_call_id = 'another' WHERE execution_id = '{LOOK}'",
    ),
    Planted(
        "calls_are_dispatched_once",
        f"{DONE}/2/look",
        "INSERT INTO chat.tool_calls"
        f" SELECT '{made_id('again')}', chat_id, message_id, tool_call_id, tool_name, executor,"
        " owner_epoch, journal_generation, dispatched_at, finished_at, result"
        f" FROM chat.tool_calls WHERE execution_id = '{LOOK}'",
    ),
    Planted(
        "recorded_results_are_told",
        LOOK,
        f"{CALLS} result = '{STRAY}' WHERE execution_id = '{LOOK}'",
    ),
    Planted(
        "shown_files_are_held",
        f"{DONE}/1",
        "DELETE FROM chat.chat_files",
    ),
    Planted(
        "shown_files_are_held",
        f"{DONE}/3",
        f"{CALLS} result = jsonb_set(result::jsonb, '{{files}}', '{HANDED}')::json"
        f" WHERE execution_id = '{LOOK}';"
        f"{MESSAGES} content = jsonb_set(content::jsonb, '{{0,files}}', '{HANDED}')::json"
        f" WHERE chat_id = '{DONE}' AND id = 3",
    ),
)

LIVENESS = (
    Planted(
        "owners_are_alive",
        RUNNING,
        "UPDATE chat.workers SET lease_until = now() - interval '1 hour';"
        f"{EXEC} changed_at = now() - interval '1 hour' WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "owners_are_alive",
        RUNNING,
        "DELETE FROM chat.workers;"
        f"{EXEC} changed_at = now() - interval '1 hour' WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "running_chats_find_an_owner",
        RUNNING,
        f"{EXEC} worker_id = NULL, changed_at = now() - interval '1 hour'"
        f" WHERE chat_id = '{RUNNING}'",
    ),
    Planted(
        "deadlines_are_kept",
        ASKING,
        f"{EXEC} deadline_at = now() - interval '1 hour' WHERE chat_id = '{ASKING}';"
        "UPDATE chat.chat_actions SET deadline_at = now() - interval '1 hour'"
        f" WHERE id = '{execution_of('ask of asking')}'",
    ),
    Planted(
        "changes_are_not_ahead_of_the_server",
        EMPTY,
        f"{EXEC} changed_xid = '9999999999' WHERE chat_id = '{EMPTY}'",
    ),
)

SECRETS = (
    Planted(
        "values_are_sealed_with_known_keys",
        f"chat.secrets/{made_id('secret')}",
        f"""
        INSERT INTO chat.secrets (id, owner_id, name, description, username, delivery, hosts,
            header, hint, sealed, sealed_key_id, version, request_hash, created_at, changed_at)
        VALUES ('{made_id("secret")}', '{STRANGER}', 'token', '', '', 'git', '{{}}', '', '', '',
            'lost', 1, '', now(), now())
        """,
    ),
)

PLANTED = (*TREES, *STATES, *MESSAGE_ROWS, *HISTORIES, *LIVENESS, *SECRETS)
