"""What chats ask of people: questions, plans and approvals, in the chat and in one list."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, written

pytestmark = pytest.mark.slow

HIDDEN = "echo safe\u202e; rm x\u200b"


async def test_a_question_and_a_plan_are_answered_where_they_are_asked(
    stack: LocalStack, page: Page
) -> None:
    await page.click("button", "Plan")
    await written(page, "Write down what was decided")
    await page.see("Which file should I write?")
    await page.click(".choice", "hello.txt")
    await page.click(".action button", "Answer")
    await page.find(".action button", "Accept")
    await page.click(".action button", "Refuse")
    await page.click(".action textarea")
    await page.type("shorter, please")
    await page.click(".action button", "Refuse")
    await page.see("As you remarked: shorter, please")
    await page.click(".action button", "Edit")
    await page.click(".action textarea")
    await page.run("document.querySelector('.action textarea').select()")
    await page.type("# Only this")
    await page.click(".action button", "Accept as edited")
    await page.find(".badge", "accepted")
    await idle(page)
    await page.click(".card-head:has(.lines-added)")
    await page.find(".diff .is-added", "# Only this")


async def test_an_approval_shows_the_exact_arguments_and_runs_only_when_allowed(
    stack: LocalStack, page: Page
) -> None:
    rule = {"tool": "execute", "effect": "ask", "reason": "It is asked here."}
    made = call(stack, "POST", "/api/v1/me/approval-rules", rule, login="paula")
    try:
        await written(page, f"run: {HIDDEN}")
        await page.find(".action-head", "May it run")
        await page.see("It is asked here.")
        chat = await page.run("location.pathname")
        await page.click(".side-waiting")
        await page.see("What waits for you")
        await page.find(".hidden-character", "U+202E")
        await page.find(".hidden-character", "U+200B")
        await page.click(".action button", "Refuse")
        await page.until("!document.body.innerText.includes('May it run')")
        await page.click(f".chat-row-link[href='{chat}']")
        await idle(page)
        await written(page, "run: echo allowed by me")
        await page.find(".action-head", "May it run")
        await page.click(".action button", "Allow once")
        await page.find(".terminal-output", "allowed by me")
    finally:
        call(stack, "DELETE", f"/api/v1/me/approval-rules/{made['id']}", login="paula")
