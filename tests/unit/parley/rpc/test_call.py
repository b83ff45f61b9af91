import asyncio

import pytest

from parley.identity import ANONYMOUS
from parley.rpc import NoCall, acting_for, current_caller, current_method, detached, remaining_s
from parley.rpc.call import ACTING_FOR, SERVED_CALL, ServedCall
from support.rpc.echo_service import MEMBER


async def test_outside_of_a_call_there_is_no_caller_and_no_deadline() -> None:
    with pytest.raises(NoCall):
        current_caller()
    assert remaining_s() is None
    assert current_method() == ""


async def test_a_call_has_its_caller_and_the_rest_of_its_time() -> None:
    SERVED_CALL.set(ServedCall(ANONYMOUS, asyncio.get_running_loop().time() + 100, "a.B/C"))
    assert current_caller() == ANONYMOUS
    assert current_method() == "a.B/C"
    remaining = remaining_s()
    assert remaining is not None
    assert 0 < remaining <= 100


async def test_a_call_that_is_overdue_has_no_time_left() -> None:
    SERVED_CALL.set(ServedCall(ANONYMOUS, asyncio.get_running_loop().time() - 1, "a.B/C"))
    assert remaining_s() == 0


async def test_acting_for_a_user_ends_with_its_block() -> None:
    with acting_for(MEMBER):
        assert ACTING_FOR.get() == MEMBER
    assert ACTING_FOR.get() is None


async def test_work_that_outlives_a_call_leaves_its_deadline_and_user_behind() -> None:
    SERVED_CALL.set(ServedCall(ANONYMOUS, asyncio.get_running_loop().time() + 100, "a.B/C"))

    async def work() -> tuple[float | None, object]:
        return remaining_s(), ACTING_FOR.get()

    with acting_for(MEMBER):
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work(), context=detached())
    assert task.result() == (None, None)
    assert current_caller() == ANONYMOUS
