"""All that is one's own is exported at the page."""

import base64
import io
import json
import zipfile

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow

LINK = "document.querySelector('a[download]').href"
#: The name of the archive and its bytes, as the browser of the person gets them.
ARCHIVE = """
    fetch(document.querySelector('a[download]').href).then(async (answer) => [
        answer.headers.get('content-disposition'),
        btoa(Array.from(new Uint8Array(await answer.arrayBuffer()),
            (each) => String.fromCharCode(each)).join('')),
    ])
"""


async def test_a_person_exports_all_that_is_theirs(stack: LocalStack, chromium: Browser) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "exporta")
    await written(page, "repeat after me: take me along")
    await page.find(".assistant-message", "take me along")
    await idle(page)
    await page.visit(f"http://{stack.http}/settings/account")
    await page.click("main button", "Export all that is mine")
    await page.find("[role=status]", "The export is complete")
    shown = await problems_in_all_looks(page)
    disposition, content = await page.run(ARCHIVE)
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(content)))
    # It is still there after a reload, and another one takes its place.
    await page.visit(f"http://{stack.http}/settings/account")
    await page.find("[role=status]", "The export is complete")
    before = await page.run(LINK)
    await page.click("main button", "Begin a new export")
    await page.until(f"document.querySelector('a[download]') && {LINK} !== {json.dumps(before)}")

    profile = json.loads(archive.read("profile.json"))
    said = [
        archive.read(each).decode() for each in archive.namelist() if each.endswith("00001.jsonl")
    ]
    assert shown == {}
    assert disposition.startswith("attachment")
    assert profile["login"] == "exporta"
    assert len(said) == 1
    assert "take me along" in said[0]
