"""One's own settings and administration at the page."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_of
from support.stack.page_session import PASSWORD, call, sign_in

pytestmark = pytest.mark.slow

SETTINGS = (
    "Profile",
    "Instructions",
    "Models",
    "Skills",
    "Schedules",
    "Display",
    "Notifications",
    "Usage",
    "Provider keys",
    "MCP servers",
    "Secrets",
    "Workspaces",
    "Sign-in",
    "Sessions",
    "API keys",
    "Your data",
    "Access to your chats",
)
ADMINISTRATION = (
    "Users",
    "Groups",
    "Identity providers",
    "Providers",
    "Models",
    "MCP servers",
    "Instructions",
    "Advisor",
    "Approvals",
    "Hooks",
    "Spend limits",
    "Usage",
    "Templates",
    "Workspaces",
    "Nodes",
    "Lifetimes",
    "Retention",
    "Audit log",
    "Break-glass",
    "Service tokens",
)


@pytest.fixture
async def administrator(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab in which an administrator is signed in."""
    users = call(stack, "GET", "/api/v1/users")["items"]
    if "root" not in [each["login"] for each in users]:
        body = {"login": "root", "role": "admin"}
        user_id = call(stack, "POST", "/api/v1/users", body)["id"]
        link = call(stack, "POST", f"/api/v1/users/{user_id}/sign-in-links", {})
        token = link["url"].partition("token=")[2]
        chosen = {"token": token, "password": PASSWORD}
        call(stack, "POST", "/api/v1/sign-in/link/password", chosen)
    opened = await chromium.page()
    await opened.resize(1280, 900)
    await sign_in(opened, stack, "root")
    return opened


async def sections_of(page: Page, path: str, stack: LocalStack) -> dict[str, str]:
    """Open every section of a screen, and return what each shows first, by its title.

    None of them may have a problem for people who do not see it or use only the keyboard.
    """
    await page.visit(f"http://{stack.http}{path}")
    await page.find(".sections-list a")
    titles = await page.run(
        "[...document.querySelectorAll('.sections-list a')].map((each) => each.innerText)"
    )
    shown = {}
    problems = {}
    for title in titles:
        await page.click(".sections-list a", title)
        await page.until(
            f"document.querySelector('.section-title')?.innerText === {title!r}"
            " && !document.querySelector('.skeleton')"
        )
        shown[title] = await page.run("document.querySelector('main').innerText")
        assert "could not be read" not in shown[title], (title, shown[title])
        if found := await problems_of(page):
            problems[title] = found
    assert problems == {}
    return shown


async def test_every_section_of_settings_and_administration_opens(
    stack: LocalStack, administrator: Page
) -> None:
    assert tuple(await sections_of(administrator, "/settings", stack)) == SETTINGS
    assert tuple(await sections_of(administrator, "/admin", stack)) == ADMINISTRATION


async def test_a_member_sees_no_administration(stack: LocalStack, page: Page) -> None:
    await page.visit(f"http://{stack.http}/admin")
    await page.see("Administrators see this page")


async def test_an_administrator_invites_somebody_and_gets_the_link_once(
    stack: LocalStack, administrator: Page
) -> None:
    await administrator.visit(f"http://{stack.http}/admin/users")
    await administrator.click("label", "Sign-in name")
    await administrator.type("marie")
    await administrator.click("button[type=submit]", "Create and invite")
    await administrator.see("A link for marie, for one use")
    link = await administrator.run("document.querySelector('.once-value').innerText")
    assert "token=" in link
    users = call(stack, "GET", "/api/v1/users")["items"]
    assert [each["role"] for each in users if each["login"] == "marie"] == ["member"]
    # The same name again is refused at its field, and what was typed stays.
    await administrator.click("label", "Sign-in name")
    await administrator.type("marie")
    await administrator.click("button[type=submit]", "Create and invite")
    await administrator.find("form [role=alert]")
    kept = await administrator.run("document.querySelector('form input').value")
    assert kept == "marie"


async def test_instructions_are_saved_and_a_key_is_shown_once(
    stack: LocalStack, page: Page
) -> None:
    await page.visit(f"http://{stack.http}/settings/instructions")
    await page.click("textarea")
    await page.type("Answer in verse.")
    await page.click("button[type=submit]", "Save")
    await page.see("Your instructions are saved.")
    await page.visit(f"http://{stack.http}/settings/instructions")
    await page.until("document.querySelector('textarea')?.value === 'Answer in verse.'")
    await page.visit(f"http://{stack.http}/settings/api-keys")
    await page.click("label", "Name")
    await page.type("laptop")
    await page.click("button[type=submit]", "Make a key")
    await page.see("Your new key")
    key = await page.run("document.querySelector('.once-value').innerText")
    await page.visit(f"http://{stack.http}/settings/api-keys")
    await page.see("laptop")
    assert key not in await page.run("document.body.innerText")


async def test_a_schedule_is_made_paused_resumed_and_deleted(stack: LocalStack, page: Page) -> None:
    await page.visit(f"http://{stack.http}/settings/schedules")
    await page.click("textarea")
    await page.type("Look at the news.")
    await page.click("label", "Cron expression")
    await page.type("99 9 * * mon-fri")
    await page.click("button[type=submit]", "Make the schedule")
    await page.see("Minute: 99 is not within 0-59")
    await page.click("label", "Cron expression")
    await page.run("document.activeElement.select()")
    await page.type("30 9 * * mon-fri")
    await page.click("button[type=submit]", "Make the schedule")
    await page.see("The schedule is made.")
    await page.see("Look at the news.")
    await page.click("button", "Pause")
    await page.see("The schedule is paused.")
    await page.find("button", "Resume")
    await page.click("button", "Resume")
    await page.see("The schedule is resumed.")
    await page.find("button", "Pause")
    # What was said covers the end of the table for a while.
    await page.until("!document.querySelector('.toasts .notice')")
    await page.click("button", "Delete")
    await page.click("dialog button", "Delete")
    await page.see("No schedules")
