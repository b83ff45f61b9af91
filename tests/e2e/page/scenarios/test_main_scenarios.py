"""What people do at the page, each with pictures and a recording for the documents."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_report import PHONE, PageReport
from support.stack.page_session import PASSWORD, call, idle, new_user, written

pytestmark = pytest.mark.slow

ANSWERS = (
    "[...document.querySelectorAll('.assistant-message .prose')].map((each) => each.innerText)"
)
QUEUED = "[...document.querySelectorAll('.queue-row .queue-text')].map((each) => each.innerText)"
TOOLS = (
    "run: echo compiling; echo done\n"
    'call: write_file {"path": "notes.md", "content": "# Notes\\n\\nOne line.\\n"}\n'
    'call: read_file {"path": "notes.md"}\n'
    'call: list_files {"path": "."}'
)
BACKGROUND = (
    'call: execute {"command": "for i in 1 2 3 4 5; do echo line $i; sleep 0.5; done; '
    'while [ ! -e go ]; do sleep 0.1; done; echo over", "run_in_background": true}'
)
TERMINAL = "document.querySelector('.terminal-frame')?.contentDocument"


async def in_chat(page: Page) -> None:
    await page.until("location.pathname.startsWith('/chats/')")


async def test_signing_in(stack: LocalStack, chromium: Browser, page_report: PageReport) -> None:
    new_user(stack, "rosalie")
    page = await chromium.page()
    goal = "A person signs in with a password and finds a composer."
    async with page_report.scenario(page, "Sign in", goal, is_recorded=True) as scenario:
        await page.visit(f"http://{stack.http}/sign-in")
        await page.click("input[name=login]")
        await page.type("rosalie")
        await page.click("input[name=password]")
        await page.type(PASSWORD)
        await scenario.step("The form.")
        await page.press("Enter")
        await page.find(".composer textarea")
        await scenario.step("The start: a composer, and the list of chats at its left.")


async def test_sending(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "A message is sent, its answer is shown as it comes, and tools have cards."
    async with page_report.scenario(rieke, "Send and stream", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, "count to 60")
        await in_chat(rieke)
        await rieke.until(f"{ANSWERS}.join('').includes(' 20 ')")
        await scenario.step("The answer comes.")
        await idle(rieke)
        await written(rieke, TOOLS)
        await rieke.see("Looked at 2 places")
        await idle(rieke)
        await rieke.click(".card-head", "notes.md")
        await rieke.find(".diff .is-added", "# Notes")
        await scenario.step("A command, a written file with its difference, and what was read.")


async def test_queueing(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "Messages that are written while a turn runs wait in a queue, and can be moved."
    async with page_report.scenario(rieke, "Queue", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, "count to 900")
        await in_chat(rieke)
        await rieke.find(".working, .status-dot.is-running")
        for name in ("one", "two"):
            await written(rieke, f"repeat after me: {name}")
            await rieke.until(f"{QUEUED}.at(-1) === 'repeat after me: {name}'")
        await rieke.run("document.querySelector('.queue-row .queue-text').focus()")
        await rieke.press("ArrowDown", "Alt")
        await rieke.until(f"{QUEUED}[0] === 'repeat after me: two'")
        await scenario.step("Two messages wait; the second was moved before the first.")
        await rieke.click(".queue-row button", "Send now", place=0)
        await rieke.until(f"{ANSWERS}.at(-1) === 'one'")
        await idle(rieke)
        await scenario.step("The first one interrupted the turn, and the other one followed.")


async def test_interrupting(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "Esc stops a turn, and what was said until then is kept."
    async with page_report.scenario(rieke, "Interrupt", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, "count to 900")
        await in_chat(rieke)
        await rieke.until(f"{ANSWERS}.join('').includes(' 30 ')")
        await rieke.press("Escape")
        await rieke.see("Interrupted. What was said until then is kept.")
        await idle(rieke)
        await scenario.step("The answer ends where it was interrupted.")


async def test_editing(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "An edited message runs again, with the files as they were before it."
    async with page_report.scenario(rieke, "Edit", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, "run: echo first > a.txt")
        await in_chat(rieke)
        await idle(rieke)
        await written(rieke, "run: echo second > a.txt")
        await rieke.until(f"{ANSWERS}.length === 2")
        await idle(rieke)
        await rieke.click(".user-message button", "Edit and run again", place=-1)
        await rieke.see("Put 1 file back")
        await scenario.step("The edit says what is lost, and puts files back.")
        await rieke.run("document.querySelector('.composer textarea').select()")
        await rieke.type("run: cat a.txt")
        await rieke.press("Enter")
        await rieke.find(".terminal-output", "first")
        await idle(rieke)
        await scenario.step("The file is as it was before the message.")


async def test_asking(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    await rieke.visit(f"http://{stack.http}/")
    goal = "The agent asks, and is answered with a choice."
    async with page_report.scenario(rieke, "Question", goal, is_recorded=True) as scenario:
        await rieke.click("button", "Plan")
        await written(rieke, "Write down what was decided")
        await rieke.see("Which file should I write?")
        await rieke.click(".choice", "hello.txt")
        await scenario.step("The question with its choices.")
        await rieke.click(".action button", "Answer")
        await rieke.find(".action button", "Accept")
    goal = "The agent proposes a plan, and writes only once it is accepted."
    async with page_report.scenario(rieke, "Plan", goal, is_recorded=True) as scenario:
        await scenario.step("The plan, to accept, edit or refuse.")
        await rieke.click(".action button", "Accept")
        await rieke.find(".badge", "accepted")
        await idle(rieke)
        await scenario.step("It was accepted, and the file is written.")


async def test_approving(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    rule = {"tool": "execute", "effect": "ask", "reason": "Commands are asked about."}
    made = call(stack, "POST", "/api/v1/me/approval-rules", rule, login="rieke")
    goal = "A command waits until it is allowed, with its exact arguments shown."
    try:
        async with page_report.scenario(rieke, "Approval", goal, is_recorded=True) as scenario:
            await rieke.visit(f"http://{stack.http}/")
            await written(rieke, "run: echo allowed by me")
            await rieke.find(".action-head", "May it run")
            await scenario.step("What would run, and why it is asked about.")
            await rieke.click(".action button", "Allow once")
            await rieke.find(".terminal-output", "allowed by me")
            await idle(rieke)
    finally:
        call(stack, "DELETE", f"/api/v1/me/approval-rules/{made['id']}", login="rieke")


async def test_following_a_process(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "The output of a command in the background is followed to its end."
    async with page_report.scenario(rieke, "Process", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, BACKGROUND)
        await in_chat(rieke)
        await idle(rieke)
        await rieke.click(".assistant-message button", "Follow")
        await rieke.find(".assistant-message .terminal-output", "line 4")
        await scenario.step("Its output comes as events.")
        await written(rieke, "run: touch go")
        await rieke.see("It ended with exit code 0.")
        await idle(rieke)


async def test_typing_in_a_terminal(
    stack: LocalStack, rieke: Page, page_report: PageReport
) -> None:
    goal = "A shell in the workspace of the chat, beside it."
    async with page_report.scenario(rieke, "Terminal", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, "run: echo begun > a.txt")
        await in_chat(rieke)
        await idle(rieke)
        await rieke.click("button", "Workspace of the chat")
        await rieke.click("[role=tab]", "Terminals")
        await rieke.click("button", "New terminal")
        await rieke.until(f"{TERMINAL}?.body?.dataset.state === 'open'")
        await rieke.run(f"{TERMINAL}.querySelector('textarea').focus()")
        for each in "cat a.txt":
            await rieke.ask("Input.dispatchKeyEvent", type="keyDown", key=each, text=each)
            await rieke.ask("Input.dispatchKeyEvent", type="keyUp", key=each)
        await rieke.press("Enter")
        await rieke.until(f"{TERMINAL}.querySelector('.xterm-rows')?.innerText.includes('begun')")
        await scenario.step("What the agent wrote, read in a shell.")
        await rieke.click("button", "Close the panel")


async def test_on_a_phone(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    goal = "On a phone the list and the chat are shown one at a time."
    async with page_report.scenario(
        rieke, "Phone", goal, is_recorded=True, screen=PHONE
    ) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await rieke.click(".composer textarea")
        await rieke.type("run: echo from a phone")
        await rieke.click(".composer button", "Send")
        await in_chat(rieke)
        await rieke.find(".terminal-output", "from a phone")
        await idle(rieke)
        await scenario.step("A chat.")
        await rieke.click("button", "Back to the chats")
        await rieke.find(".chat-row-link")
        await scenario.step("The list of chats.")


async def test_in_the_dark(stack: LocalStack, rieke: Page, page_report: PageReport) -> None:
    await rieke.prefer(prefers_color_scheme="dark")
    goal = "Colours follow the system, or are chosen in the settings."
    async with page_report.scenario(rieke, "Dark", goal, is_recorded=True) as scenario:
        await rieke.visit(f"http://{stack.http}/")
        await written(rieke, TOOLS)
        await in_chat(rieke)
        await rieke.see("Looked at 2 places")
        await idle(rieke)
        await rieke.click(".card-head", "notes.md")
        await rieke.find(".diff .is-added", "# Notes")
        await scenario.step("A chat with cards.")
        await rieke.visit(f"http://{stack.http}/settings/display")
        await rieke.find(".choices")
        await scenario.step("The settings of the display.")
