import asyncpg
import pytest

from parley.postgres import (
    DatabaseBusy,
    DatabaseUnavailable,
    Deadlocked,
    SerializationFailed,
    ServerTooOld,
    Session,
    StatementEnded,
    is_unavailable,
)
from parley.postgres.session import require_supported, typed_outages


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        asyncpg.CrashShutdownError("terminating connection because of crash"),
        asyncpg.InternalClientError("cannot switch to state 11"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.InterfaceError("connection is closed"),
        ConnectionRefusedError(),
        FileNotFoundError("no socket"),
        TimeoutError(),
        DatabaseUnavailable("gone"),
    ],
)
def test_a_lost_connection_is_an_outage(error: Exception) -> None:
    assert is_unavailable(error)
    with pytest.raises(DatabaseUnavailable), typed_outages():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError("duplicate key"),
        asyncpg.InterfaceError("another operation is in progress"),
        ValueError("something else"),
    ],
)
def test_any_other_error_stays_what_it_is(error: Exception) -> None:
    assert not is_unavailable(error)
    with pytest.raises(type(error)) as raised, typed_outages():
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.DeadlockDetectedError("deadlock detected"), Deadlocked),
        (asyncpg.SerializationError("could not serialize access"), SerializationFailed),
        (asyncpg.LockNotAvailableError("canceling statement due to lock timeout"), DatabaseBusy),
        (asyncpg.QueryCanceledError("canceling statement due to statement timeout"), DatabaseBusy),
        (asyncpg.DiskFullError("could not extend file"), StatementEnded),
        (asyncpg.OutOfMemoryError("out of memory"), StatementEnded),
    ],
)
def test_a_statement_that_the_server_gave_up_changed_nothing(
    error: Exception, kind: type[StatementEnded]
) -> None:
    assert not is_unavailable(error)
    with pytest.raises(StatementEnded, match="nothing was changed") as raised, typed_outages():
        raise error
    assert type(raised.value) is kind


def test_a_server_before_fifteen_is_refused_with_a_remedy() -> None:
    require_supported(15, 0)
    with pytest.raises(ServerTooOld) as refusal:
        require_supported(14, 9)
    assert (refusal.value.found, refusal.value.required_major) == ("14.9", 15)
    assert "upgrade" in refusal.value.remedy


def test_a_session_does_not_show_its_password() -> None:
    assert "secret" not in repr(Session("postgresql://r:secret@h/d", "chatd"))
