"""A server over standard input and output, in plain Python, that behaves as its argument says."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

TOOLS = [
    {"name": "echo", "description": "Repeat.\u200b", "inputSchema": {"type": "object"}},
    {"name": "write", "description": "Write a file.", "inputSchema": {"type": "object"}},
    {"name": "slow", "description": "Never answer.", "inputSchema": {"type": "object"}},
    {"name": "steps", "description": "Report progress.", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "End.", "inputSchema": {"type": "object"}},
    {"name": "line", "description": "Print a line without end.", "inputSchema": {"type": "object"}},
    {"name": "flood", "description": "Print without end.", "inputSchema": {"type": "object"}},
    {"name": "daemon", "description": "Leave its session.", "inputSchema": {"type": "object"}},
    {"name": "run", "description": "Run a command line.", "inputSchema": {"type": "object"}},
    {"name": "tick", "description": "Write now and then.", "inputSchema": {"type": "object"}},
    {"name": "large", "description": "Say much.", "inputSchema": {"type": "object"}},
    {"name": "a b", "description": "A name with a space.", "inputSchema": {"type": "object"}},
]


NOTE = {"uri": "memo://note", "name": "note", "mimeType": "text/plain"}
GREET = {
    "name": "greet",
    "description": "Greets.",
    "arguments": [{"name": "who", "required": True}],
}
REFERENCES = ("resources/list", "resources/read", "prompts/list", "prompts/get")


def send(**document: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **document}) + "\n")
    sys.stdout.flush()


def text(request_id: Any, said: str, *, is_error: bool = False) -> None:
    send(id=request_id, result={"content": [{"type": "text", "text": said}], "isError": is_error})


def refer(request_id: Any, method: str, params: dict[str, Any]) -> None:
    """Answer a request about resources and prompts."""
    if method == "resources/list":
        send(id=request_id, result={"resources": [NOTE]})
    elif method == "prompts/list":
        send(id=request_id, result={"prompts": [GREET]})
    elif method == "resources/read" and params["uri"] == NOTE["uri"]:
        send(id=request_id, result={"contents": [{**NOTE, "text": "remember the milk"}]})
    elif method == "prompts/get" and params["name"] == GREET["name"]:
        said = {"type": "text", "text": f"Greet {params['arguments']['who']}."}
        send(id=request_id, result={"messages": [{"role": "user", "content": said}]})
    else:
        send(id=request_id, error={"code": -32602, "message": "there is no such thing"})


def call(request_id: Any, params: dict[str, Any]) -> None:
    name, given = params["name"], params["arguments"]
    if name == "write":
        try:
            with open(given["path"], "w") as file:
                file.write("written")
        except OSError as error:
            text(request_id, str(error), is_error=True)
        else:
            text(request_id, "written")
    elif name == "steps":
        for done in (1, 2):
            token = params["_meta"]["progressToken"]
            told = {"progressToken": token, "progress": done, "total": 2, "message": "step"}
            send(method="notifications/progress", params=told)
        text(request_id, "done")
    elif name == "die":
        sys.stderr.write("the last words\n")
        os._exit(3)
    elif name == "daemon":
        daemon(given["title"])
        text(request_id, "started")
    elif name == "run":
        text(request_id, run(given["command"], given.get("variables", {})))
    elif name == "tick":
        threading.Thread(target=tick, args=(given["path"],), daemon=True).start()
        text(request_id, "started")
    elif name == "large":
        text(request_id, "x" * given["characters"])
    elif name == "line":
        while True:
            sys.stdout.write("x" * 65536)
    elif name == "flood":
        while True:
            send(method="notifications/unknown", params={"text": "x" * 60_000})
    elif name == "slow":
        count_call()
    else:
        greeting = os.getenv("GREETING", "")  # noqa: TID251 (a program of its own)
        text(request_id, f"{given.get('text', '')} {greeting}".strip())


def count_call() -> None:
    """Append to the file that counts calls without an answer; a server that only reads does not."""
    try:
        with open("slow_calls", "a") as file:
            file.write("x")
    except OSError:
        pass


def run(command: str, variables: dict[str, str]) -> str:
    """Run a command line as a server with a tool for that does."""
    ran = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **variables},  # noqa: TID251 (a program of its own)
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
        check=False,
    )
    return ran.stdout.decode(errors="replace")[-10_000:]


def tick(path: str) -> None:
    """Append to a file for ever."""
    while True:
        with open(path, "a") as file:
            file.write("x")
        time.sleep(0.01)  # noqa: TID251 (a program of its own)


def daemon(title: str) -> None:
    """Start a process in a session of its own that ignores everything but SIGKILL."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    # A new program, so that its name is visible from outside; ignored signals stay ignored.
    os.execv("/bin/sleep", [title, "600"])


def many(behaviour: str) -> list[dict[str, Any]]:
    """Return more tools, if the server is to have many."""
    if behaviour != "many":
        return []
    return [
        {"name": f"case_{number}", "description": "One case.", "inputSchema": {"type": "object"}}
        for number in range(40)
    ]


def main(behaviour: str) -> None:
    if behaviour == "crash":
        sys.exit("it cannot work like this")
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    sys.stderr.write("a line for people\n")
    sys.stdout.write("not a message\n")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            offered: dict[str, object] = {"resources": {}, "prompts": {}}
            send(
                id=message["id"],
                result={"instructions": "Be\u202e brief.", "capabilities": offered},
            )
            send(id="from-server", method="ping")
        elif message.get("method") == "tools/list":
            is_first = "cursor" not in message["params"]
            tools = [*TOOLS, *many(behaviour)]
            half = tools[:4] if is_first else tools[4:]
            send(
                id=message["id"],
                result={"tools": half, **({"nextCursor": "2"} if is_first else {})},
            )
        elif message.get("method") == "tools/call":
            call(message["id"], message["params"])
        elif message.get("method") in REFERENCES:
            refer(message["id"], message["method"], message["params"])
        elif message.get("method") == "notifications/cancelled":
            with open("cancelled", "w") as file:
                file.write(json.dumps(message["params"]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
