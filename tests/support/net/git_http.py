"""A real git server over HTTP that wants a password, and looks for it where it must not be."""

import asyncio
import base64
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HTTP_BACKEND = ("git", "http-backend")


@dataclass(slots=True)
class GitServer:
    """`git http-backend` behind a password.

    Attributes:
        root: Where the repositories are.
        username: Who may.
        password: With what.
        served: Requests that had the password.
        refused: Requests that had not.
        exposed: Processes whose arguments or variables held the password while one was served.
    """

    root: Path
    username: str
    password: str
    served: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    exposed: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        fields = {
            name.lower(): value.strip() for name, _, value in (r.partition(":") for r in rest)
        }
        method, target, _ = line.split(" ")
        wanted = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        if fields.get("authorization") != f"Basic {wanted}":
            self.refused.append(f"{method} {target}")
            writer.write(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\n"
                b"Content-Length: 0\r\n\r\n"
            )
            return
        self.served.append(f"{method} {target}")
        self.exposed += processes_with(self.password.encode(), wanted.encode())
        body = await _body(reader, fields)
        path, _, query = target.partition("?")
        writer.write(await self._answer(method, path, query, fields, body))

    async def _answer(
        self, method: str, path: str, query: str, fields: dict[str, str], body: bytes
    ) -> bytes:
        environment = {
            "PATH": os.defpath,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REMOTE_USER": self.username,
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": fields.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""),
            "HTTP_GIT_PROTOCOL": fields.get("git-protocol", ""),
        }
        program = await asyncio.create_subprocess_exec(
            *HTTP_BACKEND,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        answer, _ = await program.communicate(body)
        head, _, content = answer.partition(b"\r\n\r\n")
        status = b"200 OK"
        kept = []
        for each in head.split(b"\r\n"):
            if each.lower().startswith(b"status:"):
                status = each.partition(b":")[2].strip()
            else:
                kept.append(each)
        kept += [b"Content-Length: %d" % len(content), b"Connection: close"]
        return b"HTTP/1.1 " + status + b"\r\n" + b"\r\n".join(kept) + b"\r\n\r\n" + content


def has_http_backend() -> bool:
    """Tell whether git can serve repositories here."""
    if shutil.which("git") is None:
        return False
    where = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    return (Path(where.stdout.strip()) / "git-http-backend").exists()


def processes_with(*needles: bytes) -> list[str]:
    """Return the processes whose arguments or variables hold one of these."""
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        for name in ("cmdline", "environ"):
            try:
                text = (directory / name).read_bytes()
            except OSError:
                continue
            if any(needle in text for needle in needles):
                found.append(f"{directory.name}/{name}")
    return found


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if fields.get("transfer-encoding") == "chunked":
        text = b""
        while length := int(await reader.readline(), 16):
            text += await reader.readexactly(length)
            await reader.readexactly(2)
        return text
    return await reader.readexactly(int(fields.get("content-length", "0")))
