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

WIDTH, HEIGHT = 1100, 700
#: Of a picture, and of the many in a recording.
QUALITY, QUALITY_RECORDED = 60, 40
FRAME_S = 0.25
FRAME_S_MAX = 3.0
FRAME_MS_MAX = 1500
LAST_FRAME_MS = 3000
RECORDING_BYTES_MAX = 280_000


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


class PageReport:
    """The scenarios of one run."""

    def __init__(self) -> None:
        self.scenarios: list[Scenario] = []

    @asynccontextmanager
    async def scenario(
        self, page: Page, name: str, goal: str, *, is_recorded: bool = False
    ) -> AsyncIterator[Scenario]:
        """Note how a scenario ends; any error on the console of the page fails it."""
        shown = Scenario(name, goal, page)
        self.scenarios.append(shown)
        page.refusals.clear()
        await page.resize(WIDTH, HEIGHT)
        try:
            if is_recorded:
                async with _recorded(shown):
                    yield shown
            else:
                yield shown
            assert page.said + page.refusals == []
            shown.problem = ""
        except BaseException as error:
            shown.problem = f"{type(error).__name__}: {error}".splitlines()[0]
            raise

    def write(self, documents: Path) -> None:
        """Write the report and its pictures below a directory of documents."""
        images = documents / "images" / "advisor"
        images.mkdir(parents=True, exist_ok=True)
        for old in images.glob("*.webp"):
            old.unlink()
        rows, parts = [], []
        for each in sorted(self.scenarios, key=lambda scenario: scenario.name):
            outcome = f"failed: {each.problem}" if each.problem else "passed"
            link = f"[{each.name}](#{each.name.lower()})"
            rows.append(f"| {link} | {each.goal} | {outcome} | {each.without} |")
            parts.append(f"\n## {each.name}\n\n{each.goal} **{outcome.capitalize()}.**\n")
            for number, (words, picture) in enumerate(each.steps, start=1):
                name = f"{each.name}-{number}.webp"
                (images / name).write_bytes(picture)
                parts.append(f"\n{number}. {words}\n\n   ![{words}](images/advisor/{name})\n")
            if each.recording:
                (images / f"{each.name}.webp").write_bytes(each.recording)
                parts.append(f"\n![Recording](images/advisor/{each.name}.webp)\n")
        (documents / "advisor-report.md").write_text(
            HEAD + "\n".join(rows) + "\n" + "".join(parts), encoding="utf-8"
        )


HEAD = """\
# Report: advisor and agents on the page

Written by `scripts/page_report`, which runs the scenarios in Chromium on a new stack with the scripted model (`tests/e2e/page/advisor`, part of `make test`) and keeps what it shows. Any error on the console of the page fails a scenario.

| scenario | what holds | outcome | with the advisor disabled |
|---|---|---|---|
"""  # noqa: E501 (a paragraph of a document is one line)


@asynccontextmanager
async def _recorded(scenario: Scenario) -> AsyncIterator[None]:
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
    pictures = [picture for picture, _ in seen]
    frames = [Frame(*each) for each in zip(pictures, [*shown_ms, LAST_FRAME_MS], strict=True)]
    scenario.recording = animation(thinned(frames, RECORDING_BYTES_MAX), WIDTH, HEIGHT)


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
