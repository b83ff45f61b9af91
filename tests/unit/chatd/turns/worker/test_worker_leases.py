import logging

import pytest

from chatd.workers.engine import lease_keeper
from chatd.workers.engine.leases import Lease, LeaseTiming, contact_lost, renewed
from support.chatd.turns.worker_stage import Stage

TIMING = LeaseTiming(lease_s=15, renew_every_s=4, renew_again_s=1, fence_margin_s=3, contact_s=8)


def lease_of(*renewals: tuple[float, float]) -> Lease:
    """Return the lease after renewals that were sent and answered at those moments."""
    lease: Lease | None = None
    for sent_at, answered_at in renewals:
        lease = renewed(lease, sent_at=sent_at, answered_at=answered_at, timing=TIMING)
    assert lease is not None
    return lease


def test_a_lease_counts_from_before_it_was_sent() -> None:
    lease = lease_of((100.0, 102.0))
    assert lease == Lease(sent_at=100.0, answered_at=102.0, contact_since=102.0)
    assert lease.valid_until(TIMING) == 115.0


def test_nothing_new_starts_in_the_last_seconds_of_a_lease() -> None:
    lease = lease_of((100.0, 100.0))
    assert lease.may_act(111.9, TIMING)
    assert not lease.may_act(112.0, TIMING)


def test_an_answer_that_came_too_late_is_worth_nothing() -> None:
    assert not lease_of((100.0, 113.0)).may_act(113.0, TIMING)


def test_chats_of_others_are_judged_only_after_enough_contact() -> None:
    lease = lease_of((0.0, 0.0), (4.0, 4.0))
    assert not lease.may_sweep(7.9, TIMING)
    assert lease.may_sweep(8.0, TIMING)


def test_a_failure_breaks_the_contact_but_not_the_lease() -> None:
    broken = contact_lost(lease_of((0.0, 0.0), (4.0, 4.0), (8.0, 8.0)))
    assert broken is not None
    assert broken.may_act(9.0, TIMING)
    assert not broken.may_sweep(9.0, TIMING)
    again = renewed(broken, sent_at=9.0, answered_at=9.5, timing=TIMING)
    assert again == Lease(sent_at=9.0, answered_at=9.5, contact_since=9.5)
    assert contact_lost(None) is None


def test_a_process_that_stood_still_trusts_its_contact_no_more() -> None:
    lease = lease_of((0.0, 0.0), (4.0, 4.0), (8.0, 8.0))
    assert lease.may_sweep(15.0, TIMING)
    assert not lease.may_sweep(15.1, TIMING)
    late = renewed(lease, sent_at=15.1, answered_at=15.1, timing=TIMING)
    assert late.contact_since == 15.1


def test_regular_renewals_keep_the_contact() -> None:
    lease = lease_of((0.0, 0.1), (4.1, 4.2), (8.2, 8.3), (12.3, 12.4))
    assert lease.contact_since == 0.1


async def test_an_outage_of_the_database_is_logged_without_tracebacks_and_not_again_and_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, lease_keeper.__name__)
    stage = Stage()
    async with stage.worker():
        await stage.pass_time(5)
        stage.workers.is_down = True
        await stage.pass_time(30)
        stage.workers.is_down = False
        await stage.pass_time(5)
    records = [record for record in caplog.records if record.name == lease_keeper.__name__]
    assert [record.exc_info for record in records] == [None] * 3
    assert [record.levelname for record in records] == ["INFO", "WARNING", "WARNING"]
    assert "the fake is down" in records[0].getMessage()
    assert "over after" in records[2].getMessage()
