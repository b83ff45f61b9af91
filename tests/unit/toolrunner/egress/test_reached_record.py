"""Which hosts count for which chats of a workspace."""

from dataclasses import replace

import pytest

from toolrunner.egress.domain.reached import (
    HOSTS_MAX,
    OTHER_HOSTS,
    TREES_MAX,
    UNKNOWN_RECORD,
    ReachedHost,
    ReachedRecord,
    is_git_agent,
)

SITE = ReachedHost("example.org")
INDEX = ReachedHost("index.example.org")


def test_a_host_counts_for_every_chat_that_uses_the_workspace_by_then_and_no_later_one() -> None:
    before = ReachedRecord().with_host(INDEX)
    used = before.joined("first").joined("second")
    reached = used.with_host(SITE)
    later = reached.joined("third")

    assert used.since("first") == ()
    assert [later.since(each) for each in ("first", "second", "third")] == [(SITE,), (SITE,), ()]
    assert later.with_host(INDEX).since("third") == (INDEX,)
    assert later.with_host(INDEX).since("first") == (SITE, INDEX)


def test_for_a_chat_that_is_not_known_everything_counts() -> None:
    reached = ReachedRecord().with_host(INDEX).joined("first").with_host(SITE)
    assert reached.since("another") == (SITE, INDEX)


def test_what_tells_nothing_new_leaves_the_record_as_it_is() -> None:
    reached = ReachedRecord().joined("first").with_host(SITE)
    assert reached.with_host(SITE) is reached
    assert reached.joined("first") is reached
    # For the chat that came since, it is new.
    assert reached.joined("second").with_host(SITE).since("second") == (SITE,)


def test_git_counts_by_itself() -> None:
    by_git = replace(SITE, is_git=True)
    reached = ReachedRecord().joined("first").with_host(SITE).with_host(by_git)
    assert reached.since("first") == (SITE, by_git)


def test_a_record_is_bounded_and_hosts_beyond_still_count() -> None:
    record = ReachedRecord().joined("first")
    for number in range(HOSTS_MAX):
        record = record.with_host(ReachedHost(f"{number}.example.org"))
    record = record.joined("second").with_host(SITE)
    assert record.since("second") == (ReachedHost(OTHER_HOSTS),)
    for number in range(TREES_MAX):
        record = record.joined(f"tree {number}")
    assert len(record.trees) == TREES_MAX
    assert len(record.since("first")) == HOSTS_MAX + 1


def test_of_a_file_that_cannot_be_read_anything_may_have_been_reached() -> None:
    joined = UNKNOWN_RECORD.joined("first").joined("second")
    assert joined.since("second") == (ReachedHost(OTHER_HOSTS),)


@pytest.mark.parametrize(
    ("agent", "is_git"),
    [
        ("git/2.39.5", True),
        ("git-lfs/3.3.0 (GitHub; linux amd64; go 1.19)", True),
        ("curl/8.5", False),
        ("Mozilla git/2", False),
        ("", False),
        (None, False),
    ],
)
def test_git_is_known_by_the_name_that_it_gives_itself(agent: str | None, is_git: bool) -> None:
    assert is_git_agent(agent) == is_git
