"""What an administrator changes at the page, as the server has it afterwards."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, choose, new_user, sign_in

pytestmark = pytest.mark.slow

SAID = "Answer with the height of the tide."
#: Finds the row of a table that begins with a name.
ROW = """
    [...document.querySelectorAll('tbody tr')].find((each) => each.innerText.startsWith({name!r}))
"""


@dataclass(frozen=True)
class Administration:
    """The administration of a stack in the tab of an administrator."""

    stack: LocalStack
    page: Page

    async def visit(self, section: str) -> None:
        """Open a section."""
        await self.page.visit(f"http://{self.stack.http}/admin/{section}")

    async def fill(self, label: str, text: str) -> None:
        """Write into a field in place of what it has."""
        await self.page.click("label", label)
        await self.page.run("document.activeElement.select()")
        await self.page.type(text)

    async def press(self, name: str, label: str) -> None:
        """Press a button in the row of a name; others may have rows too."""
        found = f"[...{ROW.format(name=name)}.querySelectorAll('button')]"
        await self.page.until(ROW.format(name=name).strip())
        await self.page.run(f"{found}.find((each) => each.innerText === {label!r}).click()")

    async def delete(self, name: str, label: str) -> None:
        """Press a button in the row of a name that asks, and wait until the row is gone."""
        await self.press(name, label)
        await self.page.click("dialog button", label)
        await self.page.until(f"!{ROW.format(name=name).strip()}")

    def named(self, name: str, value: str) -> Any:
        """Return what the server has of a list by its name."""
        return [each for each in self.stored(name)["items"] if each["name"] == value]

    def stored(self, name: str) -> Any:
        """Return what the server has."""
        return call(self.stack, "GET", f"/api/v1/{name}")


@pytest.fixture
async def administration(stack: LocalStack, chromium: Browser) -> Administration:
    users = call(stack, "GET", "/api/v1/users")["items"]
    if "gunhild" not in [each["login"] for each in users]:
        new_user(stack, "gunhild", "admin")
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "gunhild")
    return Administration(stack, page)


async def test_the_instructions_of_all_chats_are_changed(administration: Administration) -> None:
    page, before = administration.page, administration.stored("settings")["system_prompt"]
    try:
        await administration.visit("prompts")
        await administration.fill("Instructions of every new chat", SAID)
        await page.click("button[type=submit]", "Save")
        await page.see("The instructions are saved.")
        stored = administration.stored("settings")["system_prompt"]
        await administration.visit("prompts")
        await page.until(f"document.querySelector('textarea')?.value === {SAID!r}")
    finally:
        restored = {"system_prompt": before}
        call(administration.stack, "PATCH", "/api/v1/settings", restored)

    assert stored == SAID


async def test_a_group_has_members_and_a_limit_until_it_is_deleted(
    administration: Administration,
) -> None:
    page = administration.page
    await administration.visit("groups")
    await administration.fill("New group", "sailors")
    await page.click("button[type=submit]", "Create")
    await administration.press("sailors", "Members")
    await choose(page, "Add", "gunhild")
    await page.click("dialog button", "Add")
    await page.find("dialog tbody tr", "gunhild")
    (group,) = administration.named("groups", "sailors")
    members = administration.stored(f"groups/{group['id']}/members")["items"]
    await administration.visit("limits")
    await choose(page, "Who", "Group sailors")
    await administration.fill("Dollars", "5")
    await choose(page, "In", "a week")
    await page.click("button[type=submit]", "Set the limit")
    await page.find("tbody tr", "Group sailors")
    limits = administration.stored("spend-limits")["items"]
    await administration.delete("Group sailors", "Remove")
    left = administration.stored("spend-limits")["items"]
    await administration.visit("groups")
    await administration.delete("sailors", "Delete")

    assert [each["login"] for each in members] == ["gunhild"]
    (limit,) = [each for each in limits if each["group_id"] == group["id"]]
    assert (limit["limit_micros"], limit["period"]) == (5_000_000, "week")
    assert left == [each for each in limits if each != limit]
    assert administration.named("groups", "sailors") == []


async def test_a_service_token_is_shown_once_and_revoked(administration: Administration) -> None:
    page = administration.page
    await administration.visit("tokens")
    await administration.fill("Name", "ferry")
    await page.click("button[type=submit]", "Issue a token")
    await page.see("The new token")
    token = await page.run("document.querySelector('.once-value').innerText")
    await administration.visit("tokens")
    await page.find("tbody tr", "ferry")
    shown = await page.run("document.body.innerText")
    (stored,) = administration.named("service-tokens", "ferry")
    await administration.delete("ferry", "Revoke")
    (revoked,) = administration.named("service-tokens?include_ended=true", "ferry")

    assert token
    assert token not in shown
    assert (stored["revoked_at"], revoked["revoked_at"] is None) == (None, False)


async def test_efforts_prices_and_the_purpose_of_a_model_are_changed(
    administration: Administration,
) -> None:
    stack, page = administration.stack, administration.page
    provider = {"name": "priced", "type": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"}
    made = call(stack, "POST", "/api/v1/providers", provider)
    model = {"provider_id": made["id"], "name": "priced-1"}
    model_id = call(stack, "POST", "/api/v1/models", model)["id"]
    try:
        await administration.visit("models")
        await page.click("button", "Edit priced-1")
        await choose(page, "Reasoning effort", "Low")
        await choose(page, "Highest effort", "High")
        await administration.fill("$ per million tokens: input", "3")
        await administration.fill("$ per million tokens: output", "15.5")
        await page.click("dialog button[type=submit]", "Save")
        await page.find("tbody tr", "$3 in, $15.5 out")
        await choose(page, "Titles alone", "priced-1")
        await page.until(
            f"[...document.querySelectorAll('select')].some((each) => each.value === '{model_id}')"
        )
        changed = administration.stored(f"models/{model_id}")
        overrides = administration.stored("model-overrides")["items"]
        await choose(page, "Titles alone", "The model of the chat")
        await page.until(
            f"![...document.querySelectorAll('select')].some((each) => each.value === '{model_id}')"
        )
        left = administration.stored("model-overrides")["items"]
    finally:
        call(stack, "DELETE", f"/api/v1/providers/{made['id']}")

    assert (changed["default_effort"], changed["max_effort"]) == ("low", "high")
    assert (changed["prices"]["input"], changed["prices"]["output"]) == (3, 15.5)
    assert [(each["purpose"], each["model_id"]) for each in overrides] == [("title", model_id)]
    assert left == []
