"""A signed-in browser at the page of a stack, whose console has to stay empty."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.net.browser import Browser, Page, browser
from support.stack.local_stack import LocalStack
from support.stack.page_report import PageReport
from support.stack.page_session import sign_in


@pytest.fixture
async def chromium(tmp_path: Path) -> AsyncIterator[Browser]:
    """Give a browser; nothing may be reported on the consoles of its tabs."""
    async with browser(tmp_path / "browser") as opened:
        yield opened
    assert [line for page in opened.pages for line in page.said] == []


@pytest.fixture
async def page(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab in which the owner is signed in."""
    opened = await chromium.page()
    await opened.resize(1280, 800)
    await sign_in(opened, stack)
    return opened


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Iterator[PageReport]:
    """Give the report of the run, which is written if a directory for it was named."""
    report = PageReport()
    yield report
    if directory := request.config.getoption("--page-report"):
        report.write(Path(directory))
