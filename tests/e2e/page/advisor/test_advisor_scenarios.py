"""The advisor at the page, scenario by scenario, each with what is seen when it is disabled."""

import json
from typing import Any

import pytest

from support.net.browser import Page
from support.stack.advisors import Advisors
from support.stack.local_stack import LocalStack
from support.stack.page_report import PageReport
from support.stack.page_session import call, idle

pytestmark = pytest.mark.slow

QUESTION = "10,000 jobs a day: one table, or a message broker?"
ASK = f"call: advisor {json.dumps({'question': QUESTION})}"
HAPPY = f"Which queue do we need?\n{ASK}\nrun: echo one table"
ASKED, FAILED = "Asked the advisor", "The advisor could not help"
AGENT = json.dumps({"name": "Speaker", "prompt": "repeat after me: here"})
NEIGHBOURS = (
    f"run: echo before\n{ASK}\nrun: echo after\ncall: spawn_agent {AGENT}\ncall: wait_agents {{}}"
)
#: A word of the paragraph about the advisor in the system prompt.
GUIDANCE = "You can ask an advisor"
LABELS = "[...document.querySelectorAll('.card-label')].map((each) => each.innerText.trim())"
#: Opens or closes every card and back; gives whether each changed both times.
TOGGLED = """
    (async () => {
        const shown = (head) => head.getAttribute('aria-expanded');
        const click = async (head) => {
            head.click();
            await new Promise((done) => setTimeout(done, 50));
            return shown(head);
        };
        const changed = [];
        for (const head of document.querySelectorAll('.card-head')) {
            const before = shown(head);
            changed.push((await click(head)) !== before && (await click(head)) === before);
        }
        return changed;
    })()
"""
#: How the cards look, other than the advisor's: classes and texts, without times.
NEIGHBOUR_CARDS = """
    [...document.querySelectorAll('.card')]
        .filter((card) => !card.innerText.toLowerCase().includes('advisor'))
        .map((card) => [card.className, card.querySelector('.card-label').innerText,
            card.querySelector('.terminal-output')?.innerText ?? ''].join(' | '))
"""


async def ask(page: Page, stack: LocalStack, text: str) -> None:
    """Write a message in a new chat."""
    await page.visit(f"http://{stack.http}/")
    await page.click(".composer textarea")
    await page.type(text)


async def ended(page: Page) -> list[str]:
    """Wait until the turn is over, and return the labels of its cards."""
    await page.see("That is all the demo does.")
    await idle(page)
    found: list[str] = await page.run(LABELS)
    return found


async def test_a_an_agent_is_advised_and_goes_on(
    stack: LocalStack, adele: Page, advisors: Advisors, report: PageReport
) -> None:
    goal = "A root chat asks the advisor, shows readable advice, and goes on."
    async with report.scenario(adele, "A", goal, is_recorded=True) as scenario:
        advisors.enable("slow")
        await ask(adele, stack, HAPPY)
        await scenario.step("The prompt, before it is sent.")
        await adele.press("Enter")
        await adele.find(".card.is-running .card-head", "Asks the advisor")
        await adele.find(".card.is-running .card-body", "Begin with")
        await scenario.step("The advisor answers; its words are shown as they come.")
        assert (await ended(adele))[0] == ASKED
        await adele.click(".card-head", ASKED)
        await adele.find(".advisor-question", QUESTION)
        await adele.find(".card-body strong", "measure")
        advice = await adele.run("document.querySelector('.card-body').innerText")
        await adele.find(".terminal-output", "one table")
        await scenario.step("The advice is text, and the agent went on with a command.")

        advisors.disable()
        await ask(adele, stack, HAPPY)
        await adele.press("Enter")
        without = await ended(adele)
        await scenario.gate_is_off("The same prompt gets no advice, and the agent goes on.")
        assert "A broker can come later." in advice
        assert '"type"' not in advice
        assert without[0] == FAILED


async def test_b_without_consent_and_in_agents_there_is_no_advisor(
    stack: LocalStack, adele: Page, advisors: Advisors, report: PageReport
) -> None:
    goal = (
        "Neither the tool nor the paragraph about it is there when it is disabled, nor in agents."
    )
    async with report.scenario(adele, "B", goal) as scenario:
        told = []
        for is_enabled in (False, True):
            if is_enabled:
                advisors.enable()
            chat = {
                "content": [{"type": "text", "text": "Begin."}],
                "model_id": advisors.models["plain"],
            }
            made = call(stack, "POST", "/api/v1/chats", chat, login="adele")
            await adele.visit(f"http://{stack.http}/chats/{made['id']}")
            await adele.see("Done.")
            await idle(adele)
            told.append(offers_advisor(advisors.asked("plain")[-1]))
        await ask(
            adele, stack, f"call: spawn_agent {json.dumps({'prompt': ASK})}\ncall: wait_agents {{}}"
        )
        await adele.press("Enter")
        await ended(adele)
        await adele.click(".card-head", "Started the agent")
        await adele.click(".card-body a", "Open the agent")
        await adele.find(".user-bubble", "call: advisor")
        in_agent = await ended(adele)
        await scenario.step("The advisor is enabled, and an agent that asks it has none.")

        advisors.disable()
        await ask(adele, stack, ASK)
        await adele.press("Enter")
        without = await ended(adele)
        await scenario.gate_is_off("A root chat that asks it has none either.")
        assert told == [(False, False), (True, True)]
        assert in_agent == [FAILED]
        assert without == [FAILED]


def offers_advisor(body: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether a request to a model has the tool, and the paragraph about it."""
    names = [each["function"]["name"] for each in body["tools"]]
    return "advisor" in names, GUIDANCE in json.dumps(body["messages"])


async def test_c_each_state_of_the_card_is_readable_and_opens_and_closes(
    stack: LocalStack, adele: Page, advisors: Advisors, report: PageReport
) -> None:
    goal = "The card shows that it runs, advice, that the limit is reached, and an error."
    async with report.scenario(adele, "C", goal, is_recorded=True) as scenario:
        advisors.enable("slow", uses=1)
        await ask(adele, stack, f"{ASK}\n{ASK}")
        await adele.press("Enter")
        await adele.find(".card.is-running .card-body", "Begin with")
        await scenario.step("It runs.")
        states = await ended(adele)
        await adele.click(".card-head", ASKED)
        await adele.find(".card-note", "0 more questions in this turn")
        await scenario.step("Advice, with its model and what is left.")
        await adele.click(".card-head", ASKED)
        await adele.until("!document.querySelector('.advisor-question')")
        await adele.click(".card-head", "Advisor limit reached")
        await adele.until("document.querySelector('.card-note')?.innerText.length > 10")
        await scenario.step("The limit of a turn is reached.")
        toggled = await adele.run(TOGGLED)
        advisors.enable("failing")
        await ask(adele, stack, ASK)
        await adele.press("Enter")
        failed = await ended(adele)
        await adele.until("document.querySelector('.field-problem')?.innerText.length > 10")
        await scenario.step("The model of the advisor fails.")

        advisors.disable()
        await ask(adele, stack, f"{ASK}\n{ASK}")
        await adele.press("Enter")
        without = await ended(adele)
        await scenario.gate_is_off("Neither advice nor its limit: both calls fail.")
        assert states == [ASKED, "Advisor limit reached"]
        assert toggled == [True, True]
        assert failed == [FAILED]
        assert without == [FAILED, FAILED]


async def test_d_cards_beside_the_advisors_are_as_without_it(
    stack: LocalStack, adele: Page, advisors: Advisors, report: PageReport
) -> None:
    goal = "Cards of commands and agents beside the advisor's look and work as without it."
    async with report.scenario(adele, "D", goal) as scenario:
        seen = {}
        for is_enabled in (True, False):
            if is_enabled:
                advisors.enable()
            else:
                advisors.disable()
            await ask(adele, stack, NEIGHBOURS)
            await adele.press("Enter")
            found = await ended(adele)
            toggled = await adele.run(TOGGLED)
            seen[is_enabled] = (found[1], await adele.run(NEIGHBOUR_CARDS))
            assert toggled == [True] * len(found)
            await adele.run("document.querySelector('.card').scrollIntoView()")
            if is_enabled:
                await scenario.step("A command before it, a command and agents after it.")
        await scenario.gate_is_off("The others are the same; the question itself fails.")
        assert (seen[True][0], seen[False][0]) == (ASKED, FAILED)
        assert len(seen[True][1]) == len(NEIGHBOURS.splitlines()) - 1
        assert seen[True][1] == seen[False][1]
