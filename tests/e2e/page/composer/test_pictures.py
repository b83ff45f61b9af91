"""Pictures at the page: tiles with progress, a failure that is tried again, and a large view."""

import asyncio

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, sign_in, written

pytestmark = pytest.mark.slow

#: Attach pictures of one colour each, made by the browser.
ATTACH = """
    (async (...named) => {{
        const chosen = new DataTransfer();
        for (const [name, colour] of named) {{
            const canvas = document.createElement('canvas');
            [canvas.width, canvas.height] = [320, 200];
            const brush = canvas.getContext('2d');
            brush.fillStyle = colour;
            brush.fillRect(0, 0, 320, 200);
            const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
            chosen.items.add(new File([blob], name, {{type: 'image/png'}}));
        }}
        const picker = document.querySelector('.composer input[type=file]');
        picker.files = chosen.files;
        picker.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})({named})
"""
#: Attach a picture of noise, which takes as many bytes as it has.
NOISE = """
    (async () => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [1500, 1500];
        const brush = canvas.getContext('2d');
        const noise = brush.createImageData(1500, 1500);
        for (let at = 0; at < noise.data.length; at += 1) {
            noise.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
        }
        brush.putImageData(noise, 0, 0);
        const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
        const chosen = new DataTransfer();
        chosen.items.add(new File([blob], 'noise.png', {type: 'image/png'}));
        const picker = document.querySelector('.composer input[type=file]');
        picker.files = chosen.files;
        picker.dispatchEvent(new Event('change', {bubbles: true}));
        return blob.size;
    })()
"""
STORED = """
    fetch(document.querySelector('.composer .tile-picture').src)
        .then((answer) => answer.blob())
        .then(({size, type}) => [size, type])
"""
MODELS_BYTES_MAX = 5 * 1024 * 1024
TWO = ATTACH.format(named="['red.png', 'crimson'], ['green.png', 'seagreen']")
#: Answer uploads with a refusal while this is set.
REFUSING = """
    (() => {
        const open = XMLHttpRequest.prototype.open;
        XMLHttpRequest.prototype.open = function (method, address, ...rest) {
            const refused = window.refuses && address.startsWith('/api/v1/files');
            return open.call(this, method, refused ? '/api/v1/none' : address, ...rest);
        };
        window.refuses = true;
    })()
"""


async def test_pictures_are_tiles_and_open_large(stack: LocalStack, chromium: Browser) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "petra")
    await page.find(".composer textarea")
    await page.run(REFUSING)
    await page.run(ATTACH.format(named="['lost.png', 'navy']"))
    await page.find(".tile.is-failed [role=alert]", "lost.png")
    failed = await problems_in_all_looks(page)
    await page.run("window.refuses = false")
    await page.click(".tile.is-failed button", "Retry")
    await page.find(".tile .picture-button", "Open lost.png large")
    await page.run(TWO)
    await page.until("document.querySelectorAll('.tile .picture-button').length === 3")
    await page.until("!document.querySelector('.tile.is-pending')")
    tiles = await problems_in_all_looks(page)
    await page.click(".tile button", "Remove lost.png")
    await page.until("document.querySelectorAll('.tile').length === 2")
    await written(page, "repeat after me: seen")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.click(".user-message .picture-button", "Open red.png large")
    await page.find("dialog .lightbox-picture")
    await page.until("document.querySelector('.lightbox-picture').naturalWidth === 320")
    large = await problems_in_all_looks(page)
    await page.press("ArrowRight")
    await page.find("dialog h2", "green.png")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog')")
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    path = f"/api/v1/chats/{chat_id}/messages"
    stored = await asyncio.to_thread(call, stack, "GET", path, login="petra")
    (sent,) = [each["content"] for each in stored["messages"] if each["role"] == "user"]

    assert (failed, tiles, large) == ({}, {}, {})
    assert [part.get("name") for part in sent if part["type"] == "file"] == ["red.png", "green.png"]


async def test_a_picture_that_is_too_large_for_models_is_made_smaller(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "grete")
    await page.find(".composer textarea")
    chosen = await page.run(NOISE)
    await page.find(".tile .picture-button", "Open noise.webp large")
    size, kind = await page.run(STORED)

    assert chosen > MODELS_BYTES_MAX > size > 0
    assert kind == "image/webp"
