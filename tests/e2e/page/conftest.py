"""A signed-in browser at the page of a stack, whose console has to stay empty."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.net.browser import Browser, BrowserProcess, Page, browser
from support.session.shared_programs import stop_when_left
from support.stack.local_stack import LocalStack
from support.stack.page_report import ADVISOR, MAIN, PageReport, ReportDocument
from support.stack.page_session import sign_in


@pytest.fixture(scope="session")
def browser_process(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[BrowserProcess]:
    """Give the browser of all tests here, in which each of them has a profile of its own."""
    process = BrowserProcess(tmp_path_factory.mktemp("browser"))
    stop_when_left(pytestconfig.stash, Path(__file__).parent, process.stop)
    yield process
    process.stop()


@pytest.fixture
async def chromium(browser_process: BrowserProcess) -> AsyncIterator[Browser]:
    """Give a browser; nothing may be reported on the consoles of its tabs."""
    async with browser(browser_process.url()) as opened:
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
    """Give the report on the advisor and agents, which is written if a directory was named."""
    yield from _report(request, ADVISOR)


@pytest.fixture(scope="session")
def page_report(request: pytest.FixtureRequest) -> Iterator[PageReport]:
    """Give the report on what people do at the page, which is written if a directory was named."""
    yield from _report(request, MAIN)


def _report(request: pytest.FixtureRequest, document: ReportDocument) -> Iterator[PageReport]:
    directory = request.config.getoption("--page-report")
    report = PageReport(document, Path(directory) if directory else None)
    yield report
    report.write()
