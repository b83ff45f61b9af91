"""The goal of a chat in its panel: set, followed, paused, resumed, reached and ended."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

WRITE = 'call: write_file {"path": "done.txt", "content": "done"}'
SUBMIT_DISABLED = "document.querySelector('.panel button[type=submit]').disabled"
CHOOSE_JUDGE = """
    ((model_id) => {{
        const field = document.querySelector('.panel select');
        field.value = model_id;
        field.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})({model_id!r})
"""


async def opened(page: Page, stack: LocalStack, login: str) -> str:
    """Begin a chat, open the tab of its goal, and return the path of the chat in the API."""
    await page.resize(1280, 900)
    await sign_in(page, stack, login)
    await written(page, "repeat after me: ready")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.click(".bar button", "Workspace of the chat")
    await page.click("[role=tab]", "Goal")
    return "/api/v1" + str(await page.run("location.pathname"))


async def filled(page: Page, label: str, text: str) -> None:
    """Write into a field of the panel in place of what is there."""
    await page.click(".panel label", label)
    await page.run("document.activeElement.select()")
    await page.type(text)


async def test_a_goal_is_set_followed_and_reached(stack: LocalStack, chromium: Browser) -> None:
    page = await chromium.page()
    path = await opened(page, stack, "greta")
    await filled(page, "What to achieve", WRITE)
    await filled(page, "Check command", "cat done.txt")
    await filled(page, "Turns", "0")
    await filled(page, "US dollars", "two")
    await page.click(".panel button[type=submit]", "Set the goal")
    await page.until("document.querySelectorAll('.panel [aria-invalid=true]').length === 2")
    form = await problems_in_all_looks(page)
    kept = await page.run("document.querySelector('.panel textarea').value")
    await filled(page, "Turns", "3")
    await filled(page, "US dollars", "2.50")
    await page.click(".panel button[type=submit]", "Set the goal")
    await page.find(".panel .badge", "reached")
    await page.find(".panel .preview", "done")
    await page.find(".panel .goal-used", "1 of 3")
    reached = await problems_in_all_looks(page)
    stored = call(stack, "GET", f"{path}/goal", login="greta")
    await page.click(".panel button", "Remove")
    await page.click("dialog button", "Remove")
    await page.find(".panel label", "What to achieve")

    assert (form, reached) == ({}, {})
    assert kept == WRITE
    assert (stored["turns_max"], stored["cost_max_micros"]) == (3, 2_500_000)


async def test_a_goal_is_paused_resumed_and_ended(stack: LocalStack, chromium: Browser) -> None:
    page = await chromium.page()
    path = await opened(page, stack, "gustav")
    await filled(page, "What to achieve", "count to 2000")
    await filled(page, "Check command", "echo broken; exit 3")
    await page.click(".panel button[type=submit]", "Set the goal")
    await page.find(".panel .badge", "active")
    await page.click(".panel button", "Pause")
    await page.find(".panel .badge", "paused")
    paused = call(stack, "GET", f"{path}/goal", login="gustav")["state"]
    shown = await problems_in_all_looks(page)
    await page.click(".panel button", "Resume")
    await page.find(".panel .badge", "active")
    await page.click(".panel button", "End")
    await page.click("dialog button", "End")
    await page.find(".panel label", "What to achieve")

    assert paused == "paused"
    assert shown == {}


async def test_a_goal_has_a_judge_that_is_shown_with_its_verdict_and_kept_when_it_is_changed(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    path = await opened(page, stack, "gerda")
    await filled(page, "What to achieve", "repeat after me: no")
    await filled(page, "Turns", "1")
    without = await page.run(SUBMIT_DISABLED)
    models = call(stack, "GET", "/api/v1/models", login="gerda")["items"]
    judge = next(each["id"] for each in models if each["name"] == "scripted")
    await page.until(f"!!document.querySelector('.panel option[value=\"{judge}\"]')")
    await page.run(CHOOSE_JUDGE.format(model_id=judge))
    await page.until(f"!{SUBMIT_DISABLED}")
    form = await problems_in_all_looks(page)
    await page.click(".panel button[type=submit]", "Set the goal")
    await page.find(".panel .badge", "exhausted")
    await page.find(".panel section[aria-label=Judge]", "No call succeeded yet.")
    shown = await problems_in_all_looks(page)
    first = call(stack, "GET", f"{path}/goal", login="gerda")
    await page.click(".panel button", "Set another goal")
    await filled(page, "What to achieve", "run: echo yes")
    await page.click(".panel button[type=submit]", "Set the goal")
    await page.find(".panel .badge", "reached")
    await page.find(".panel section[aria-label=Judge]", "A call succeeded.")
    second = call(stack, "GET", f"{path}/goal", login="gerda")

    assert without is True
    assert (form, shown) == ({}, {})
    assert (first["check_command"], first["verdict"]) == ("", "No call succeeded yet.")
    assert [each["judge_model_id"] for each in (first, second)] == [judge, judge]
