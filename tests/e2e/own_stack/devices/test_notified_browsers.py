"""Notifications in a real browser: turned on in the settings, sent by a stack, shown by a worker.

No browser here reaches the push service of its vendor, so subscribing is answered by the test: with
an address of the push service on this machine. What arrives there is given to the browser over its
DevTools protocol, as it would give the text of a real message to the worker.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.net.browser import new_browser
from support.net.push_service import Browser as Device
from support.net.push_service import loopback_push_service, unpadded
from support.stack.own_stack import reaching_here
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow

#: What the browser does to subscribe; the subscription is kept over reloads of the page.
SUBSCRIBING = """
    const fake = (key) => ({
        endpoint: %(endpoint)s,
        options: {applicationServerKey: key},
        toJSON: () => ({endpoint: %(endpoint)s, keys: %(keys)s}),
        unsubscribe: async () => { localStorage.removeItem('test.push'); return true; },
    });
    PushManager.prototype.subscribe = async function (options) {
        const key = Array.from(new Uint8Array(options.applicationServerKey));
        localStorage.setItem('test.push', JSON.stringify(key));
        return fake(new Uint8Array(key).buffer);
    };
    PushManager.prototype.getSubscription = async function () {
        const key = JSON.parse(localStorage.getItem('test.push') ?? 'null');
        return key && fake(new Uint8Array(key).buffer);
    };
"""
SHOWN = """
    navigator.serviceWorker.ready
        .then((registration) => registration.getNotifications())
        .then((all) => all.map((each) => [each.title, each.body, each.tag, each.data.path]))
"""
CHECKED = "document.querySelector('input[name=notifications]')?.checked"


async def test_a_closed_page_is_notified_and_turned_off_again(tmp_path: Path) -> None:
    async with (
        reaching_here(tmp_path / "home") as stack,
        loopback_push_service() as service,
        new_browser(tmp_path) as browser,
    ):
        device, origin = Device(), f"http://{stack.http}"
        page = await browser.page()
        await browser.grant(origin, "notifications")
        values = {"endpoint": service.endpoint("laptop"), "keys": device.keys()}
        script = SUBSCRIBING % {name: json.dumps(value) for name, value in values.items()}
        await page.ask("Page.addScriptToEvaluateOnNewDocument", source=script)
        await sign_in(page, stack)
        await page.visit(f"{origin}/settings/notifications")
        await page.click("main label", "Notify me on this device")
        await page.until(f"{CHECKED} === true")
        await page.click("main button", "Send a test")
        await page.see("A test was sent.")
        tested = kinds(service, device)
        await page.visit(f"{origin}/")
        await written(page, "repeat after me: done while you were away")
        await page.find(".assistant-message", "done while you were away")
        await idle(page)
        chat = await page.run("location.pathname")
        await service.until(lambda: len(service.pushed) == 2)
        finished = json.loads(device.decrypt(service.pushed[1].body))

        await page.visit(f"{origin}/settings/notifications")
        deliver = {"origin": f"{origin}/", "registrationId": await page.worker()}
        for pushed in (finished, {**finished, "body": "a later one"}, {"kind": "of no chat"}):
            await page.ask("ServiceWorker.deliverPushMessage", **deliver, data=json.dumps(pushed))
        await page.until(f"{SHOWN}.then((all) => all[0]?.[1] === 'a later one')")
        shown = await page.run(SHOWN)

        await page.click("main label", "Notify me on this device")
        await page.until(f"{CHECKED} === false")
        await page.see("No devices")
        await page.visit(f"{origin}/")
        await written(page, "repeat after me: not told")
        await page.find(".assistant-message", "not told")
        await idle(page)
        said = page.said

    assert tested == ["test"]
    assert (finished["kind"], finished["chat_id"]) == ("finished", chat.removeprefix("/chats/"))
    assert shown == [[finished["title"], "a later one", finished["chat_id"], chat]]
    assert len(service.pushed) == 2
    assert unpadded(device.public_key) == device.keys()["p256dh"]
    assert said == []


def kinds(service: Any, device: Device) -> list[str]:
    """Return what kinds of notifications arrived."""
    return [json.loads(device.decrypt(each.body))["kind"] for each in service.pushed]
