"""One's own skills at the page."""

import base64
import io
import zipfile
from pathlib import Path

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, sign_in

pytestmark = pytest.mark.slow

#: Keeps what the page saves, as base64.
KEEP = """
    window.saved = null;
    URL.createObjectURL = (blob) => {
        blob.arrayBuffer().then((content) => {
            saved = btoa(Array.from(new Uint8Array(content),
                (each) => String.fromCharCode(each)).join(''));
        });
        return '#';
    };
"""


def skill(name: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: Does {name}\n---\n{body}\n"


async def test_skills_are_imported_edited_and_downloaded(
    stack: LocalStack, chromium: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "skills.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("deploy/SKILL.md", skill("deploy", "Carefully."))
        made.writestr("deploy/run.sh", "exit 1")
        made.writestr("review/SKILL.md", skill("review", "Slowly."))
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "skilla")
    body = {"content": skill("review", "Quickly.")}
    call(stack, "PUT", "/api/v1/me/skills/review", body, login="skilla")
    await page.visit(f"http://{stack.http}/settings/skills")
    await page.find("main button", "Import files")
    document = await page.ask("DOM.getDocument")
    found = await page.ask(
        "DOM.querySelector", nodeId=document["root"]["nodeId"], selector="input[type=file]"
    )
    await page.ask("DOM.setFileInputFiles", files=[str(file)], nodeId=found["nodeId"])
    await page.find("main li", "review replaces yours")
    await page.see("1 file is left out: deploy/run.sh")
    listed = await problems_in_all_looks(page)
    await page.click("main button", "Store 2 skills")
    await page.find("tbody tr", "Does deploy")
    await page.click("tbody button", "Edit review")
    await page.until("document.querySelector('textarea').value.includes('Slowly.')")
    await page.run("document.querySelector('textarea').select()")
    await page.type(skill("review", "Once more."))
    await page.click("button[type=submit]", "Store the skill")
    await page.see("The skill is stored.")
    await page.run(KEEP)
    await page.click("main button", "Download all as ZIP")
    await page.until("saved !== null")
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(await page.run("saved"))))

    assert listed == {}
    assert archive.namelist() == ["deploy/SKILL.md", "review/SKILL.md"]
    assert archive.read("review/SKILL.md").decode().endswith("---\nOnce more.")
    assert archive.testzip() is None
