"""The panel beside a chat: files, changes and processes of its workspace."""

import json

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import begun, call, idle, open_panel, sign_in, written

pytestmark = pytest.mark.slow

CHANGED = (
    'run: git init -q . && printf "a\\nb\\n" > a.txt && git add . && git -c user.name=x '
    '-c user.email=x@example.com commit -qm one && printf "a\\nc\\nd\\n" > a.txt'
)
PUSHED = (
    "run: git init -q -b main . && echo a > a.txt && git add . && git config user.name x && "
    "git config user.email x@example.com && git commit -qm one && "
    "git remote add origin https://github.com/acme/tide.git && "
    "git update-ref refs/remotes/origin/main HEAD && git branch -q -u origin/main && "
    "git commit -qm two --allow-empty && echo b > a.txt"
)
UPLOADED = """
    (() => {
        const chosen = new DataTransfer();
        chosen.items.add(new File(['uploaded text'], 'new.txt'));
        chosen.items.add(new File(['newer'], 'b.txt'));
        const picker = document.querySelector('.panel input[type=file]');
        picker.files = chosen.files;
        picker.dispatchEvent(new Event('change', {bubbles: true}));
    })()
"""


async def test_files_changes_and_processes_of_the_workspace_are_shown(
    stack: LocalStack, page: Page
) -> None:
    await page.visit(f"http://{stack.http}/")
    await page.click("textarea")
    await page.type("run: git init -q . && echo hello panel > a.txt && mkdir d && echo > d/b.txt")
    await page.press("Enter")
    await page.see("That is all the demo does.")
    await open_panel(page, "Files")
    await page.click(".entry", "d")
    await page.find(".entry", "b.txt")
    await page.click("button", "Up")
    await page.click(".entry", "a.txt")
    await page.see("hello panel")
    await page.click("[role=tab]", "Changes")
    await page.find("[role=region]", "Changes of a.txt")
    await page.click("[role=tab]", "Processes")
    await page.see("exit 0")
    # The parts of the page scroll, never the whole of it.
    overflow = "document.documentElement.scrollHeight - innerHeight"
    assert await page.run(overflow) == 0
    await page.click("[role=tab]", "Summary")
    await page.see("Input tokens")
    # The next visit shows it again, until it is closed.
    await page.visit(await page.run("location.href"))
    await page.find("[role=tab]", "Changes")
    await page.click("button", "Close the panel")
    await page.until("!document.querySelector('.panel')")


async def test_a_comment_on_a_changed_line_becomes_a_reference_in_the_message(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "dora", CHANGED)
    await open_panel(page)
    await page.click("button", "Side by side")
    await page.click(".is-sides .diff-comment", "Comment on line 3")
    await page.type("Why d?")
    await page.click("button", "Add to the message")
    await page.find(".composer .file-chip", "a.txt:3")
    await written(page, "Please explain.")
    await page.find(".user-message .file-chip", "a.txt:3")

    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    messages = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", login="dora")["messages"]
    newest = max((each for each in messages if each["role"] == "user"), key=lambda each: each["id"])
    assert newest["content"] == [
        {
            "type": "file-reference",
            "file_name": "a.txt",
            "start_line": 3,
            "end_line": 3,
            "content": "d",
        },
        {"type": "text", "text": "Why d?"},
        {"type": "text", "text": "Please explain."},
    ]


async def test_a_branch_says_where_it_was_pushed_and_a_commit_is_asked_for(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "brita", PUSHED)
    await open_panel(page, "Changes")
    await page.find(".panel-part", "1 ahead of origin/main")
    link = await page.run("document.querySelector('.panel-part a').href")
    words = await page.run("document.querySelector('.panel-part a').parentElement.innerText")
    problems = await problems_in_all_looks(page)
    await page.click(".panel button", "Ask for a commit")
    await page.find(".user-message", "Commit the changes.")

    assert link == "https://github.com/acme/tide/compare/main?expand=1"
    assert words.endswith("Open a pull request (github.com)")
    assert problems == {}


async def test_a_state_of_the_files_is_kept_compared_restored_and_the_restore_undone(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "kira", CHANGED)
    await open_panel(page, "Checkpoints")
    await page.click("button", "Keep this state")
    # Its name is the beginning of the prompt, with the time and how much changed.
    await page.find(".time-line-entry strong", "After “run: ")
    await page.find(".time-line-entry .panel-note", "now, 1 file changed")
    await written(page, "run: echo later > a.txt")
    await page.until("document.querySelectorAll('.assistant-message .prose').length === 2")
    await idle(page)
    await page.click("button", "What changed since")
    await page.find(".diff .is-added", "later")
    await page.click("button", "Restore")
    await page.see("1 file was put back.")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    file = f"/api/v1/chats/{chat_id}/files/content?path=a.txt"
    restored = await page.run(f"fetch('{file}').then((answer) => answer.text())")
    await page.click("button", "Undo the restore")
    await page.until(f"fetch('{file}').then((a) => a.text()).then((t) => t === 'later\\n')")

    assert restored == "a\nc\nd\n"


async def test_the_output_of_a_process_is_followed_while_it_runs(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "livia")
    await written(
        page,
        'call: execute {"command": "echo first; while [ ! -e go ]; do sleep 0.1; done; echo second;'
        ' sleep 600", "run_in_background": true}',
    )
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await open_panel(page, "Processes")
    await page.click("button", "Output")
    await page.find(".panel .terminal-output", "first")
    followed = [url for url in page.streams.values() if "/chats/" in url]
    assert len(followed) == 1
    assert "processes=" in followed[0]
    await written(page, "run: touch go")
    await page.find(".panel .terminal-output", "second")
    await page.click(".panel button", "Stop")
    await page.until("!document.querySelector('.panel .badge.is-accent')")


async def test_a_file_is_uploaded_into_the_directory_that_is_shown(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "ursa", "run: mkdir d && echo old > d/b.txt")
    await open_panel(page, "Files")
    await page.click(".entry", "d")
    await page.find("button", "Upload")
    await page.run(UPLOADED)
    # A file that is there stays unless the person says otherwise.
    await page.find("dialog code", "b.txt")
    await page.click("dialog button", "Keep what is there")
    await page.click(".entry", "new.txt")
    await page.see("uploaded text")
    await page.click(".panel-part button", "Files")
    await page.click(".entry", "b.txt")
    await page.find(".preview", "old")
    await page.click(".panel-part button", "Files")
    await page.run(
        UPLOADED.replace("chosen.items.add(new File(['uploaded text'], 'new.txt'));", "")
    )
    await page.click("dialog button", "Replace")
    await page.see("b.txt was replaced.")
    await page.click(".entry", "b.txt")
    await page.find(".preview", "newer")


async def test_monitors_of_a_chat_are_listed_with_their_cause_and_cancelled(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "mona")
    waits = "while [ ! -e go ]; do sleep 0.2; done; echo all ready 7; sleep 300"
    background = json.dumps({"command": waits, "run_in_background": True})
    await written(page, f"call: execute {background}")
    await page.until("location.pathname.startsWith('/chats/')")
    path = "/api/v1" + str(await page.run("location.pathname"))
    await open_panel(page, "Processes")
    await page.find(".panel .badge", "running")
    await idle(page)
    (process,) = call(stack, "GET", f"{path}/processes", login="mona")["items"]
    for pattern in ("ready [0-9]", "never"):
        watched = json.dumps({"process_id": process["id"], "pattern": pattern})
        await written(page, f"call: monitor_process {watched}")
        await page.find("[aria-label=Monitors] code", pattern)
        await idle(page)
    await page.find("[aria-label=Monitors] .badge", "waiting")
    listed = await problems_in_all_looks(page)
    # The newest is the first: the one that waits for a line that never comes.
    await page.click("[aria-label=Monitors] button", "Cancel the monitor")
    await page.find("[aria-label=Monitors]", "Its owner cancelled it.")
    await page.until("!document.querySelector('.toasts .notice')")
    await written(page, "run: touch go")
    await page.find("[aria-label=Monitors]", "The process printed: all ready 7")
    await page.find("[aria-label=Monitors] .badge", "woken")
    await idle(page)
    over = await problems_in_all_looks(page)
    stored = call(stack, "GET", f"{path}/monitors", login="mona")["items"]

    assert (listed, over) == ({}, {})
    assert [(each["pattern"], each["state"]) for each in stored] == [
        ("never", "ended"),
        ("ready [0-9]", "woken"),
    ]
