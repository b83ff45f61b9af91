"""What scenarios at the page showed: their steps with pictures, a recording, and how they ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic

from parley.clock import SystemClock
from support.net.animated_webp import Frame, animation, thinned
from support.net.browser import Page

#: Of a picture, and of the many in a recording.
QUALITY, QUALITY_RECORDED = 60, 40
FRAME_S = 0.25
FRAME_S_MAX = 3.0
FRAME_MS_MAX = 1500
LAST_FRAME_MS = 3000


@dataclass(frozen=True, slots=True)
class Screen:
    """The screen on which scenarios are shown."""

    width: int
    height: int
    is_mobile: bool = False


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """The document that scenarios are written to.

    Attributes:
        name: Of its file, without the ending.
        images: The folder of its pictures.
        head: How it begins, down to the head of its table.
        screen: What scenarios are shown on if they say nothing else.
        recording_bytes_max: The bytes of a recording.
        compares: Whether a scenario is also shown with the advisor disabled.
    """

    name: str
    images: str
    head: str
    screen: Screen
    recording_bytes_max: int
    compares: bool = False


@dataclass(slots=True)
class Scenario:
    """One scenario: what it shows, step by step.

    Attributes:
        name: A short name, also of its files.
        goal: What holds if it passes.
        steps: What was seen, each with its picture.
        without: What was seen with the advisor disabled.
        recording: The scenario as a picture that moves; empty for none.
        problem: Why it failed; empty if it passed.
    """

    name: str
    goal: str
    page: Page
    screen: Screen
    steps: list[tuple[str, bytes]] = field(default_factory=list)
    without: str = ""
    recording: bytes = b""
    problem: str = "it did not end"

    async def step(self, words: str) -> None:
        """Keep a picture of what is shown."""
        self.steps.append((words, await self.page.picture(QUALITY)))

    async def gate_is_off(self, words: str) -> None:
        """Keep a picture of what is shown with the advisor disabled."""
        self.without = words
        await self.step(words)

    @property
    def file_name(self) -> str:
        """The beginning of the names of its files."""
        return self.name.replace(" ", "-")


class PageReport:
    """The scenarios of one run.

    Args:
        document: What they are written to.
        directory: The directory of documents; None if nothing is written, so nothing is recorded.
    """

    def __init__(self, document: ReportDocument, directory: Path | None) -> None:
        self._document = document
        self._directory = directory
        self.scenarios: list[Scenario] = []

    @asynccontextmanager
    async def scenario(
        self,
        page: Page,
        name: str,
        goal: str,
        *,
        is_recorded: bool = False,
        screen: Screen | None = None,
    ) -> AsyncIterator[Scenario]:
        """Note how a scenario ends; any error on the console of the page fails it."""
        screen = screen or self._document.screen
        shown = Scenario(name, goal, page, screen)
        self.scenarios.append(shown)
        page.refusals.clear()
        await page.resize(screen.width, screen.height, mobile=screen.is_mobile)
        try:
            if is_recorded and self._directory is not None:
                async with _recorded(shown, self._document.recording_bytes_max):
                    yield shown
            else:
                yield shown
            assert page.said + page.refusals == []
            shown.problem = ""
        except BaseException as error:
            shown.problem = f"{type(error).__name__}: {error}".splitlines()[0]
            raise

    def write(self) -> None:
        """Write the report and its pictures, if it has scenarios and a directory."""
        if self._directory is None or not self.scenarios:
            return
        folder = f"images/{self._document.images}"
        images = self._directory / folder
        images.mkdir(parents=True, exist_ok=True)
        for old in images.glob("*.webp"):
            old.unlink()
        rows, parts = [], []
        for each in self._sorted():
            outcome = f"failed: {each.problem}" if each.problem else "passed"
            link = f"[{each.name}](#{each.file_name.lower()})"
            compared = f" {each.without} |" if self._document.compares else ""
            rows.append(f"| {link} | {each.goal} | {outcome} |{compared}")
            parts.append(f"\n## {each.name}\n\n{each.goal} **{outcome.capitalize()}.**\n")
            for number, (words, picture) in enumerate(each.steps, start=1):
                name = f"{each.file_name}-{number}.webp"
                (images / name).write_bytes(picture)
                parts.append(f"\n{number}. {words}\n\n   ![{words}]({folder}/{name})\n")
            if each.recording:
                (images / f"{each.file_name}.webp").write_bytes(each.recording)
                parts.append(f"\n![Recording]({folder}/{each.file_name}.webp)\n")
        (self._directory / f"{self._document.name}.md").write_text(
            self._document.head + "\n".join(rows) + "\n" + "".join(parts), encoding="utf-8"
        )

    def _sorted(self) -> list[Scenario]:
        """Return the scenarios as they ran, or by name where a name is a letter."""
        if self._document.compares:
            return sorted(self.scenarios, key=lambda scenario: scenario.name)
        return self.scenarios


ADVISOR = ReportDocument(
    name="advisor-report",
    images="advisor",
    head="""\
# Report: advisor and agents on the page

Written by `scripts/page_report`, which runs the scenarios in Chromium on a new stack with the scripted model (`tests/e2e/page/advisor`, part of `make test`) and keeps what it shows. Any error on the console of the page fails a scenario.

| scenario | what holds | outcome | with the advisor disabled |
|---|---|---|---|
""",  # noqa: E501 (a paragraph of a document is one line)
    screen=Screen(1100, 700),
    recording_bytes_max=280_000,
    compares=True,
)
PHONE = Screen(390, 720, is_mobile=True)
MAIN = ReportDocument(
    name="page-scenarios",
    images="page",
    head="""\
# What people do at the page

Written by `scripts/page_report`, which runs the scenarios in Chromium on a new stack with the scripted model (`tests/e2e/page/scenarios`, part of `make test`) and keeps what it shows. Any error on the console of the page fails a scenario. [web-page.md](web-page.md) describes the page.

| scenario | what is seen | outcome |
|---|---|---|
""",  # noqa: E501 (a paragraph of a document is one line)
    screen=Screen(1000, 640),
    recording_bytes_max=115_000,
)


@asynccontextmanager
async def _recorded(scenario: Scenario, bytes_max: int) -> AsyncIterator[None]:
    """Keep what the page shows as a picture that moves."""
    seen: list[tuple[bytes, float]] = []
    async with asyncio.TaskGroup() as tasks:
        recording = tasks.create_task(_keep_recording(scenario.page, seen))
        try:
            yield
        finally:
            recording.cancel()
    times = [time for _, time in seen]
    shown_ms = [
        min(FRAME_MS_MAX, round((after - before) * 1000)) for before, after in pairwise(times)
    ]
    if len(seen) > 1:
        pictures = [picture for picture, _ in seen]
        frames = [Frame(*each) for each in zip(pictures, [*shown_ms, LAST_FRAME_MS], strict=True)]
    else:
        # A busy machine took no pictures in time; those of the steps are there in any case.
        frames = [Frame(picture, FRAME_MS_MAX) for _, picture in scenario.steps]
    if not frames:
        return
    screen = scenario.screen
    scenario.recording = animation(thinned(frames, bytes_max), screen.width, screen.height)


async def _keep_recording(page: Page, seen: list[tuple[bytes, float]]) -> None:
    clock = SystemClock()
    while True:
        # A navigation overtakes it: it is refused, or never answered.
        with suppress(TimeoutError, AssertionError):
            async with asyncio.timeout(FRAME_S_MAX):
                picture = await page.picture(QUALITY_RECORDED)
            if not seen or seen[-1][0] != picture:
                seen.append((picture, monotonic()))
        await clock.sleep(FRAME_S)
