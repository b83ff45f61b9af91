"""The way from a provider to a model that chats can choose, at the page of an administrator."""

import asyncio

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.browser import Browser
from support.net.model_server import model_server, whole
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, new_user, sign_in

pytestmark = pytest.mark.slow

REFUSAL = whole(b'{"error":{"message":"bad key"}}', "401 Unauthorized")


async def test_a_provider_is_added_checked_and_one_of_its_models_chosen(
    stack: LocalStack, chromium: Browser
) -> None:
    await asyncio.to_thread(new_user, stack, "provia", "admin")
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "provia")
    await page.visit(f"http://{stack.http}/admin/models")
    await page.click("main p a", "Providers")
    try:
        async with MockModels.serving(clock=SystemClock()) as mock:
            await page.click("input[placeholder=anthropic]")
            await page.type("chosen")
            await page.click("input[type=url]")
            await page.type(mock.url)
            await page.click("input[type=password]")
            await page.type("sk-0123456789")
            await page.click("button[type=submit]", "Add the provider")
            await page.find("section[aria-label=chosen] .badge", "Works")
            await page.click("section[aria-label=chosen] fieldset label")
            await page.click("section[aria-label=chosen] button[type=submit]", "Add 1 model")
            await page.find("[aria-label='Models of chosen'] .badge", "Default of new chats")
        shown = await problems_in_all_looks(page)
        models = (await asyncio.to_thread(call, stack, "GET", "/api/v1/models"))["items"]
        added = [each for each in models if not each["from_environment"]]

        async with model_server(REFUSAL) as server:
            body = {"name": "refusing", "type": "openai_compatible", "base_url": server.url}
            made = await asyncio.to_thread(call, stack, "POST", "/api/v1/providers", body)
            key = {"provider_id": made["id"], "key": "sk-0123456789"}
            await asyncio.to_thread(call, stack, "POST", "/api/v1/provider-keys", key)
            await page.visit(f"http://{stack.http}/admin/providers")
            await page.click("section[aria-label=refusing] button", "Choose models")
            await page.find("section[aria-label=refusing] .notice", "refusing listed no models")
            await page.find("section[aria-label=refusing] li .badge", "Does not work")
            await page.find("section[aria-label=refusing] li", "The provider refused this key")
    finally:
        listed = await asyncio.to_thread(call, stack, "GET", "/api/v1/providers")
        for each in listed["items"]:
            if each["name"] in ("chosen", "refusing"):
                path = f"/api/v1/providers/{each['id']}"
                await asyncio.to_thread(call, stack, "DELETE", path)

    assert shown == {}
    assert [each["is_default"] for each in added] == [True]


async def test_rows_of_tables_are_lists_of_named_values_on_a_phone(
    stack: LocalStack, chromium: Browser
) -> None:
    await asyncio.to_thread(new_user, stack, "phoebe", "admin")
    page = await chromium.page()
    await sign_in(page, stack, "phoebe")
    await page.resize(390, 800, mobile=True)
    for path in ("admin/users", "admin/models", "admin/nodes", "admin/audit-log"):
        await page.visit(f"http://{stack.http}/{path}")
        await page.find("tbody td[data-title]")
        beside = await page.run("""
            [...document.querySelectorAll('.table-frame')].map((each) =>
                [each.scrollWidth - each.clientWidth,
                 getComputedStyle(each.querySelector('td[data-title]:nth-child(2)'), '::before')
                     .content.replaceAll('"', '') !== 'none'])
        """)
        assert beside == [[0, True]], path
        assert await page.run("document.documentElement.scrollWidth <= innerWidth"), path
