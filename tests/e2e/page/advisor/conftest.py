"""A member at the page of a stack whose advisor a scenario switches."""

from collections.abc import AsyncIterator

import pytest

from support.net.browser import Browser, Page
from support.stack.advisors import Advisors, advisors_of
from support.stack.local_stack import LocalStack
from support.stack.page_session import sign_in


@pytest.fixture
async def advisors(stack: LocalStack) -> AsyncIterator[Advisors]:
    """Give the advisor of the stack, disabled, with models for it."""
    async with advisors_of(stack) as advisors:
        advisors.disable()
        yield advisors


@pytest.fixture
async def adele(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab in which Adele is signed in, whose chats are those of the scenarios alone."""
    opened = await chromium.page()
    await opened.resize(1280, 800)
    await sign_in(opened, stack, "adele")
    return opened
