"""The example of the README with two agents in forks, answered and watched at the page."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.net.browser import Page
from support.stack.advisors import Advisors
from support.stack.local_stack import PROGRAMS, LocalStack
from support.stack.page_report import PageReport
from support.stack.page_session import call, idle

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "agents" / "invoice"
PROMPT = "write what is missing in invoice.py"
ENDED_S_MAX = 120.0
FIRST_CARD = "document.querySelector('.card-label')?.innerText.trim()"


@asynccontextmanager
async def running(
    stack: LocalStack, directory: Path, *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the command of the README in a directory, as Adele."""
    key = call(stack, "POST", "/api/v1/me/api-keys", {"name": "show"}, login="adele")["key"]
    process = await asyncio.create_subprocess_exec(
        *(str(PROGRAMS / "parley"), "run", "--plan", *options, PROMPT),
        cwd=directory,
        env={
            "PATH": stack.variables()["PATH"],
            "HOME": str(directory),
            "PARLEY_URL": f"http://{stack.http}",
            "PARLEY_API_KEY": key,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told_by(process: asyncio.subprocess.Process) -> str:
    """Wait for the end of the command, and return what it told."""
    async with asyncio.timeout(ENDED_S_MAX):
        _, told = await process.communicate()
    return told.decode()


async def test_two_agents_work_in_forks_and_both_are_merged_before_the_eyes_of_a_person(
    stack: LocalStack, adele: Page, advisors: Advisors, report: PageReport, tmp_path: Path
) -> None:
    goal = "A chat is advised, asks, plans, and merges the work of two agents; its check passes."
    directory = tmp_path / "invoice"
    shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("__pycache__"))
    async with report.scenario(adele, "Show", goal, is_recorded=True) as scenario:
        advisors.enable()
        async with running(stack, directory) as command:
            await adele.click(".chat-row-link", PROMPT)
            await adele.find(".action", "From which amount, in cents, is shipping free?")
            advised = await adele.run(FIRST_CARD)
            await adele.click(".bar button", "Workspace of the chat")
            await adele.click("[role=tab]", "Agents")
            await adele.find(".panel", "No agents yet")
            await scenario.step("It was advised, and asks one question.")
            await adele.click(".choice", "5000")
            await adele.click(".action button", "Answer")
            await adele.find(".action button", "Accept")
            await scenario.step("It proposes a plan, with the answer in it.")
            await adele.click(".action button", "Accept")
            await adele.find(".panel .agent-row", "Tax")
            await adele.find(".panel .agent-row", "Shipping")
            await scenario.step("Two agents, each in a fork.")
            await adele.see("That is all the demo does.")
            await idle(adele)
            told = await told_by(command)
        await adele.click("[role=tab]", "Changes")
        await adele.find(".panel .is-added", "return amount * TAX_PERCENT // 100")
        await adele.find(".panel .is-added", "return 0 if amount >= 5000 else 490")
        await scenario.step("The work of both is merged, and the check passes.")

        advisors.disable()
        script = directory / "agents.script"
        steps = script.read_text().splitlines(keepends=True)
        script.write_text("".join(each for each in steps if '"$agent_2"' not in each))
        async with running(stack, directory, "--answer", "5000", "--answer", "accept") as again:
            refused = await told_by(again)
        await adele.click(".chat-row-link", PROMPT)
        await adele.see("That is all the demo does.")
        await adele.find(".panel .is-added", "return amount * TAX_PERCENT // 100")
        await adele.run("document.querySelector('.timeline-scroll').scrollTop = 0")
        without = await adele.run(FIRST_CARD)
        await adele.run("document.querySelector('.card').scrollIntoView({block: 'center'})")
        await scenario.gate_is_off(
            "No advice; and without the second merge, only one function is there: the check fails."
        )
        assert (command.returncode, "OK" in told) == (0, True), told
        assert (again.returncode, "the check failed" in refused) == (1, True), refused
        assert (advised, without) == ("Asked the advisor", "The advisor could not help")
