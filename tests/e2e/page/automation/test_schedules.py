"""Schedules in the settings with all that they can have, and the runs of one."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

CHOOSE = """
    ((label, words) => {{
        const named = [...document.querySelectorAll('form label')]
            .find((each) => each.innerText === label);
        const field = document.getElementById(named.htmlFor);
        const found = [...field.options].find((each) => each.label.startsWith(words));
        field.value = found.value;
        field.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})({label!r}, {words!r})
"""


async def test_a_schedule_writes_into_a_chat_and_its_runs_are_listed(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "selma")
    await written(page, "repeat after me: here")
    await page.until("location.pathname.startsWith('/chats/')")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    await idle(page)
    await page.visit(f"http://{stack.http}/settings/schedules")
    await page.click("textarea")
    await page.type("repeat after me: again")
    await page.click("label", "Cron expression")
    await page.type("30 9 * * mon-fri")
    await page.click("label", "Time zone")
    await page.run("document.activeElement.select()")
    await page.type("Europe/Nowhere")
    await page.click("summary", "More")
    await page.click("label", "Name")
    await page.type("Every morning")
    await page.run(CHOOSE.format(label="Chat", words="repeat after me"))
    await page.click("label", "Runs at most")
    await page.type("3")
    form = await problems_in_all_looks(page)
    await page.click("button[type=submit]", "Make the schedule")
    # An unknown time zone is marked, and the rest stays as it was typed.
    await page.until("document.querySelector('[aria-invalid=true]')?.value === 'Europe/Nowhere'")
    await page.click("label", "Time zone")
    await page.run("document.activeElement.select()")
    await page.type("Europe/Berlin")
    await page.click("button[type=submit]", "Make the schedule")
    await page.find("td", "Every morning")
    await page.click("button", "Runs")
    await page.find("dialog .table-empty", "No runs yet")
    runs = await problems_in_all_looks(page)
    (stored,) = call(stack, "GET", "/api/v1/schedules", login="selma")["items"]

    assert (form, runs) == ({}, {})
    assert (stored["name"], stored["chat_id"]) == ("Every morning", chat_id)
    assert (stored["time_zone"], stored["runs_max"]) == ("Europe/Berlin", 3)


async def test_a_message_is_scheduled_for_one_time(stack: LocalStack, chromium: Browser) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "sigrid")
    await page.visit(f"http://{stack.http}/settings/schedules")
    await page.click("textarea")
    await page.type("repeat after me: on time")
    await page.run(CHOOSE.format(label="Sent", words="Once"))
    await page.find("input[type=datetime-local]")
    await page.run(
        "(() => { const field = document.querySelector('input[type=datetime-local]');"
        "const now = new Date(); now.setMinutes(now.getMinutes() - now.getTimezoneOffset() + 1);"
        "Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')"
        ".set.call(field, now.toISOString().slice(0, 16));"
        "field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    await page.click("button[type=submit]", "Make the schedule")
    await page.find("td", "repeat after me: on time")
    (stored,) = call(stack, "GET", "/api/v1/schedules", login="sigrid")["items"]
    assert (stored["cron"], stored["state"]) == (None, "active")
    assert stored["at"] is not None


async def test_a_schedule_is_changed_and_one_that_changed_meanwhile_is_not_overwritten(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "solveig")
    body = {
        "text": "Look.",
        "cron": "30 9 * * mon-fri",
        "time_zone": "Europe/Berlin",
        "runs_max": 3,
    }
    made = call(stack, "POST", "/api/v1/schedules", body, login="solveig")
    path = f"/api/v1/schedules/{made['id']}"
    await page.visit(f"http://{stack.http}/settings/schedules")
    await page.click("td button", "Change")
    await page.click("dialog label", "Cron expression")
    await page.run("document.activeElement.select()")
    await page.type("0 8 * * *")
    await page.click("dialog summary", "More")
    form = await problems_in_all_looks(page)
    await page.click("dialog button[type=submit]", "Save")
    await page.until("!document.querySelector('dialog')")
    await page.find("td", "0 8 * * * (Europe/Berlin)")
    changed = call(stack, "GET", path, login="solveig")
    # What was said covers the end of the table for a while.
    await page.until("!document.querySelector('.toasts .notice')")
    # Another client changes it while the form is open.
    await page.click("td button", "Change")
    await page.click("dialog textarea")
    await page.run("document.activeElement.select()")
    await page.type("Listen.")
    call(stack, "PATCH", path, {"text": "Smell."}, login="solveig")
    await page.click("dialog button[type=submit]", "Save")
    await page.find("dialog form > [role=alert]")
    typed = await page.run("document.querySelector('dialog textarea').value")
    stored = call(stack, "GET", path, login="solveig")

    assert form == {}
    assert (changed["text"], changed["cron"]) == ("Look.", "0 8 * * *")
    assert (changed["time_zone"], changed["runs_max"]) == ("Europe/Berlin", 3)
    assert typed == "Listen."
    assert stored["text"] == "Smell."
