import pytest

from gateway.http.limits.fair_share import FairShare


def taken_by(share: FairShare, *holders: str) -> dict[str, int]:
    """Have all holders take places in turn until none gets another; return what each has."""
    wanting = list(holders)
    while wanting:
        wanting = [holder for holder in wanting if share.take(holder)]
    return {holder: share.held(holder) for holder in holders}


@pytest.mark.parametrize(
    ("holders", "each"), [(("a",), 50), (("a", "b"), 33), (("a", "b", "c"), 25)]
)
def test_holders_that_want_everything_leave_as_much_as_each_has(
    holders: tuple[str, ...], each: int
) -> None:
    share = FairShare(100, each_max=100)
    held = taken_by(share, *holders)
    assert all(abs(count - each) <= 1 for count in held.values())
    assert share.take("somebody else")


def test_a_larger_multiple_leaves_less() -> None:
    assert taken_by(FairShare(100, each_max=100, multiple=3), "a") == {"a": 75}


def test_no_holder_has_more_than_the_most() -> None:
    assert taken_by(FairShare(100, each_max=10), "a", "b") == {"a": 10, "b": 10}


def test_what_is_given_back_can_be_taken_again() -> None:
    share = FairShare(4, each_max=4)
    assert taken_by(share, "a") == {"a": 2}
    share.release("a")
    assert share.held("a") == 1
    assert taken_by(share, "a") == {"a": 2}


def test_when_all_places_are_taken_it_is_full() -> None:
    share = FairShare(3, each_max=3)
    assert [share.take(each) for each in "abcd"] == [True, True, True, False]
    assert share.is_full
