"""Logins that no user may have, and second factors that service accounts may not have."""

from typing import Any, cast

import pytest

from gateway.identity.domain import UserKind, UserRecord, UserState
from gateway.identity.engine.second_factors import SecondFactors
from gateway.identity.engine.users import NewUser, Users
from gateway.identity.errors import InvalidRequest, IsServiceAccount
from parley.clock import FakeClock
from parley.identity import Role, User, UserId

OWNER = User(UserId("00000000-0000-0000-0000-000000000001"), Role.OWNER)
CLOCK = FakeClock()
ABSENT = cast(Any, None)  # What is refused reaches no store.
ACCOUNT = UserRecord(
    id=OWNER.id,
    login="nightly",
    display_name="nightly",
    email="",
    role=Role.MEMBER,
    state=UserState.ACTIVE,
    version=1,
    created_at=CLOCK.now(),
    updated_at=CLOCK.now(),
    deactivated_at=None,
    kind=UserKind.SERVICE,
)


class OneAccount:
    """Users of whom there is one, a service account."""

    async def find(self, user_id: str) -> UserRecord:
        return ACCOUNT


@pytest.mark.parametrize("login", [".", ".."])
async def test_a_login_that_paths_use_for_a_folder_is_refused(login: str) -> None:
    users = Users(
        ABSENT, ABSENT, bus=ABSENT, clock=CLOCK, new_id=lambda: "id", changed=lambda: None
    )
    with pytest.raises(InvalidRequest) as refused:
        await users.create(OWNER, NewUser("r1", login, "", "", Role.MEMBER))
    assert "login" in str(refused.value)


async def test_a_service_account_adds_no_authenticator_app() -> None:
    factors = SecondFactors(
        ABSENT,
        cast(Users, OneAccount()),
        attempts=ABSENT,
        clock=CLOCK,
        new_id=lambda: "id",
        token_bytes=lambda count: bytes(count),
        host="parley.test",
    )
    with pytest.raises(IsServiceAccount):
        await factors.start(OWNER)
