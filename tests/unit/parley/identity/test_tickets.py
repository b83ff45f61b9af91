from datetime import timedelta
from pathlib import Path

import pytest

from parley.clock import FakeClock
from parley.identity import (
    TICKET_LIFETIME_S,
    AttachTicket,
    RefusalReason,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    TicketIssuer,
    TicketReader,
    Trust,
    TrustFile,
    Unauthenticated,
    User,
    UserId,
)
from parley.identity.verification import verify

ALICE = UserId("00000000-0000-0000-0000-00000000000a")


class Stage:
    """A chatd that issues, a gateway that would like to, and a node that checks."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.keys = {name: SigningKey.generate() for name in ServiceName}
        file = TrustFile(directory / "trust.json")
        for name, key in self.keys.items():
            file.add_key(name, key)
        self.trust = Trust(file.path, self.clock)
        self.check = TicketReader(self.trust, self.clock)

    def issued(self, issuer: ServiceName = ServiceName.CHATD) -> str:
        office = TicketIssuer(self.keys[issuer], self.clock)
        text, _ = office.issue(
            "ticket",
            user_id=ALICE,
            workspace_id="workspace",
            process_id="process",
            node="node",
            is_view_only=True,
            epoch=3,
        )
        return text

    def refusal(self, text: str) -> RefusalReason:
        with pytest.raises(Unauthenticated) as refused:
            self.check.read(text)
        return refused.value.reason


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_ticket_says_who_may_attach_to_what(stage: Stage) -> None:
    now = stage.clock.now().replace(microsecond=0)
    assert stage.check.read(stage.issued()) == AttachTicket(
        id="ticket",
        user_id=ALICE,
        workspace_id="workspace",
        epoch=3,
        process_id="process",
        node="node",
        is_view_only=True,
        issued_at=now,
        expires_at=now + timedelta(seconds=TICKET_LIFETIME_S),
    )


def test_a_ticket_is_good_for_a_minute(stage: Stage) -> None:
    text = stage.issued()
    stage.clock.advance(TICKET_LIFETIME_S - 1)
    assert stage.check.read(text).id == "ticket"
    stage.clock.advance(1)
    assert stage.refusal(text) is RefusalReason.TOKEN_EXPIRED


def test_nobody_but_chatd_issues_tickets(stage: Stage) -> None:
    assert stage.refusal(stage.issued(ServiceName.GATEWAY)) is RefusalReason.TOKEN_ISSUER
    stranger = TicketIssuer(SigningKey.generate(), stage.clock)
    text, _ = stranger.issue(
        "t", user_id=ALICE, workspace_id="w", process_id="p", node="n", is_view_only=False
    )
    assert stage.refusal(text) is RefusalReason.TOKEN_KEY_UNKNOWN


def test_what_was_changed_on_the_way_is_refused(stage: Stage) -> None:
    head, body, signature = stage.issued().split(".")
    other_body = stage.issued(ServiceName.CHATD).split(".")[1][::-1]
    assert stage.refusal(f"{head}.{other_body}.{signature}") in (
        RefusalReason.TOKEN_SIGNATURE,
        RefusalReason.TOKEN_MALFORMED,
    )
    assert stage.refusal("x" * 5000) is RefusalReason.TOKEN_MALFORMED
    assert body


def test_tokens_are_no_tickets_and_tickets_no_tokens(stage: Stage) -> None:
    signer = Signer(ServiceName.CHATD, stage.keys[ServiceName.CHATD], stage.clock)
    token = signer.call_token(ServiceName.TOOLRUNNER, User(ALICE, Role.MEMBER))
    assert stage.refusal(token) is RefusalReason.TOKEN_MALFORMED
    with pytest.raises(Unauthenticated):
        verify(
            stage.issued(), audience=ServiceName.TOOLRUNNER, trust=stage.trust, clock=stage.clock
        )
