"""A person at the page whose chats are those of the scenarios alone."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import sign_in


@pytest.fixture
async def rieke(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab in which Rieke is signed in."""
    opened = await chromium.page()
    await sign_in(opened, stack, "rieke")
    return opened
