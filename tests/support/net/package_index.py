"""A package index that wants a password, with one package that can be installed."""

import asyncio
import base64
import hashlib
import io
import zipfile
from dataclasses import dataclass, field

PACKAGE = "parley-probe"
WHEEL = "parley_probe-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """Return a package that holds one module."""
    info = "parley_probe-1.0.dist-info"
    files = {
        "parley_probe.py": "WORD = 'installed'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: parley-probe\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            # Without the time of day: the same bytes for every request.
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


@dataclass(slots=True)
class PackageIndex:
    """An index in the form that pip reads.

    Attributes:
        username: Who may; empty if everyone may.
        password: With what.
        base: Where the files are, if not beside the index.
        served: Paths that were asked for with the password.
        refused: Paths that were asked for without.
    """

    username: str = ""
    password: str = ""
    base: str = "../../files/"
    served: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            writer.write(self._answer(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> bytes:
        path = head.split(" ")[1]
        wanted = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        if self.username and f"authorization: basic {wanted}".lower() not in head.lower():
            self.refused.append(path)
            return _response("401 Unauthorized", "text/plain", b"no\n")
        self.served.append(path)
        packed = wheel()
        if path == f"/simple/{PACKAGE}/":
            digest = hashlib.sha256(packed).hexdigest()
            link = f'<a href="{self.base}{WHEEL}#sha256={digest}">{WHEEL}</a>'
            return _response("200 OK", "text/html", f"<html><body>{link}</body></html>".encode())
        if path == f"/files/{WHEEL}":
            return _response("200 OK", "application/octet-stream", packed)
        return _response("404 Not Found", "text/plain", b"no\n")


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
