"""Text of models and tools never becomes anything but text: no script, no request, no report."""

from urllib.parse import urlsplit

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle

pytestmark = pytest.mark.slow

SCRIPTS = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<svg onload='window.hacked = 1'><animate onbegin='window.hacked = 1'></svg>",
    "<iframe srcdoc='<script>parent.hacked = 1</script>'></iframe>",
    "<base href='http://elsewhere.test/'><style>@import 'http://elsewhere.test/a';</style>",
    "<details open ontoggle='window.hacked = 1'>x</details>",
    "[click](javascript:window.hacked=1) [b](JaVa\tscript:window.hacked=1)",
    "[c](data:text/html,<script>window.hacked=1</script>) <javascript:window.hacked=1>",
    "`${window.hacked = 1}` {{constructor.constructor('window.hacked = 1')()}}",
)
REQUESTS = (
    "![pixel](http://elsewhere.test/p.png?secret=1)",
    "![ref][r] and [link][r]\n\n[r]: http://elsewhere.test/ref.png",
    "<link rel=stylesheet href=http://elsewhere.test/a.css>",
    "<video src=http://elsewhere.test/v poster=http://elsewhere.test/p></video>",
    "```mermaid\ngraph TD; A-->B; click A href 'http://elsewhere.test/m'\n```",
    "$\\href{http://elsewhere.test}{x}$ <img srcset='http://elsewhere.test/s 2x'>",
    "<div style='background:url(http://elsewhere.test/b)'>x</div>",
    "http://elsewhere.test/auto and https://elsewhere.test/auto",
)


#: What a page without its policy would allow; the policy reports each.
FORBIDDEN = """
    (async () => {
        const reported = [];
        addEventListener('securitypolicyviolation',
            (each) => reported.push(each.effectiveDirective));
        const allowed = [];
        const attempt = (name, work) => {
            try { work(); allowed.push(name); } catch { /* It was refused. */ }
        };
        const script = 'window.hacked = 1';
        attempt('text as HTML', () => { document.createElement('div').innerHTML = '<b>x</b>'; });
        attempt('text as script', () => { document.createElement('script').text = script; });
        attempt('text as handler', () => { document.body.setAttribute('onclick', script); });
        attempt('policy of another name', () => trustedTypes.createPolicy('x', {}));
        const picture = new Image();
        picture.src = 'http://elsewhere.test/p.png';
        document.body.append(picture);
        document.body.setAttribute('style', 'color: red');
        await fetch('http://elsewhere.test/f').then(() => allowed.push('fetch'), () => {});
        await new Promise((done) => setTimeout(done, 200));
        document.body.removeAttribute('style');
        picture.remove();
        return [allowed, [...new Set(reported)].sort(), String(window.hacked)];
    })()
"""


async def test_the_policy_refuses_what_would_run_or_load_it(stack: LocalStack, page: Page) -> None:
    await page.visit(f"http://{stack.http}/")
    await page.find(".composer textarea")
    allowed, reported, hacked = await page.run(FORBIDDEN)
    # What was refused is told on the console, as it should be.
    page.said.clear()

    assert (allowed, hacked) == ([], "undefined")
    assert {"connect-src", "img-src", "require-trusted-types-for", "trusted-types"} <= set(reported)


async def test_hostile_text_runs_nothing_and_loads_nothing(stack: LocalStack, page: Page) -> None:
    page.requests.clear()
    await page.visit(f"http://{stack.http}/")
    await page.run("addEventListener('securitypolicyviolation', () => { window.reported = 1; })")
    for text in (*SCRIPTS, *REQUESTS):
        parts = [{"type": "text", "text": f"repeat after me: {text.replace(chr(10), ' ')}"}]
        body = {"content": parts, "title": text.splitlines()[0][:100]}
        call(stack, "POST", "/api/v1/chats", body, login="paula")
    corpus = "\n\n".join((*SCRIPTS, *REQUESTS))
    tool = {"type": "text", "text": "run: " + "; ".join(f"echo {text!r}" for text in SCRIPTS[:3])}
    chat = call(stack, "POST", "/api/v1/chats", {"content": [tool]}, login="paula")
    await page.visit(f"http://{stack.http}/chats/{chat['id']}")
    await page.run("addEventListener('securitypolicyviolation', () => { window.reported = 1; })")
    await page.find(".terminal-output")
    await idle(page)
    written = await page.run("document.querySelector('.terminal-output').innerText")
    body = {"content": [{"type": "text", "text": f"repeat after me: {corpus}"}]}
    call(stack, "POST", f"/api/v1/chats/{chat['id']}/messages", body, login="paula")
    await page.find(".assistant-message a", "http://elsewhere.test/auto")
    await idle(page)
    for row in range(len(SCRIPTS)):
        await page.run(f"document.querySelectorAll('.chat-row-link')[{row + 1}].click()")
        await page.find("article")
    await idle(page)

    hosts = {urlsplit(url).netloc for url in page.requests if url.startswith("http")}
    assert hosts == {stack.http}
    assert await page.run("[window.hacked, window.reported].map(String).join()") == (
        "undefined,undefined"
    )
    assert "<script>" in written
    assert await page.run(
        "document.querySelectorAll('.timeline :is(script, iframe, base, style, video, object)')"
        ".length"
    ) == 0  # fmt: skip
    assert await page.run(
        "[...document.querySelectorAll('.timeline a')]"
        ".filter((each) => !/^https?:|^mailto:/.test(each.href)).length"
    ) == 0  # fmt: skip
