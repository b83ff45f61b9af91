"""The workspace of a chat for `parley run`: copies files to it, runs a check, returns the diff."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.retries import post
from parley.cli.chats.listing import chat_path
from parley.cli.chats.turn_output import Patience
from parley.cli.errors import CliError, TimedOut

#: A base64-encoded piece has to fit into the body of a request.
PIECE_BYTES: Final = 128 * 1024
WAIT_S_MAX: Final = 20
#: The error code while the process has not read its earlier input yet.
INPUT_FULL: Final = "NODE_FULL"
PAUSE_S: Final = 0.2

#: Files that test runs leave behind do not count as changes, whatever the copy has git ignore.
LEFTOVERS: Final = r"__pycache__/\n*.py[co]\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n"

#: Commits the files as the base of the diff: all that are not ignored, or, if git listed them in
#: the original, the ignored ones too.
KEEP: Final = "git add -A"
KEEP_IGNORED: Final = (
    "git add -A -f && git rm -rq --cached --ignore-unmatch -- "
    "'__pycache__' '*/__pycache__' '*.py[co]' '.*_cache' '*/.*_cache'"
)
#: Unpacks the archive from standard input, and commits it.
UNPACK: Final = (
    f"tar -xzf - && git init -q -b main && printf '{LEFTOVERS}' >> .git/info/exclude && "
    "{keep} && "
    "git -c user.name=parley -c user.email=parley@localhost -c commit.gpgsign=false "
    "commit -q --allow-empty -m 'As it was copied'"
)


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A piece of the output of a running process."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        exit_code: None if a signal ended it.
        words: The same as text.
    """

    exit_code: int | None
    words: str


class ChatWorkspace:
    """The workspace of one chat."""

    def __init__(self, api: Api, chat_id: str, patience: Patience, *, key: str) -> None:
        self._api = api
        self._path = chat_path(chat_id)
        self._patience = patience
        self._key = key

    def fill(self, archive: bytes, *, keeps_ignored: bool = False) -> None:
        """Copy the files of an archive to the workspace, and commit them as the base of the diff.

        Args:
            archive: The files.
            keeps_ignored: Whether files count that their own .gitignore ignores.

        Raises:
            CliError: they could not be copied.
        """
        command = UNPACK.replace("{keep}", KEEP_IGNORED if keeps_ignored else KEEP)
        process = self._post("fill", "processes", {"command": command, "stdin_mode": "pipe"})
        path = f"processes/{process['id']}/stdin"
        for place in range(0, len(archive), PIECE_BYTES):
            piece = base64.b64encode(archive[place : place + PIECE_BYTES]).decode()
            self._write(f"piece-{place}", path, {"data": piece})
        self._write("end", path, {"end_of_input": True})
        said = ""
        for event in self._followed(process["id"]):
            match event:
                case OutputChunk(text):
                    said += text
                case Ended(0, _):
                    return
                case Ended(_, words):
                    raise CliError(f"the files could not be copied ({words}): {said.strip()}")

    def run(self, command: str) -> Iterator[OutputChunk | Ended]:
        """Run a command in the workspace; yield its output as it arrives, and how it ended.

        On Ctrl-C or a timeout the command is killed.
        """
        process = self._post("check", "processes", {"command": command})
        try:
            yield from self._followed(process["id"])
        except (KeyboardInterrupt, TimedOut):
            with suppress(CliError):
                self._post("stop", f"processes/{process['id']}/signal", {"signal": "kill"})
            raise

    def diff(self) -> tuple[str, bool]:
        """Return the diff since the files were copied, and whether it is complete."""
        answer = self._api.call("GET", f"{self._path}/diff", needs="patch")
        is_whole = not answer["truncated"] and not any(file["binary"] for file in answer["files"])
        return str(answer["patch"]), is_whole

    def _followed(self, process_id: str) -> Iterator[OutputChunk | Ended]:
        cursor = 0
        while True:
            if monotonic() > self._patience.deadline:
                raise TimedOut(f"a command still runs after {self._patience.timeout_s:g} s")
            query = f"wait={WAIT_S_MAX}&until=output&cursor={cursor}"
            path = f"{self._path}/processes/{process_id}/output?{query}"
            answer = self._api.call("GET", path, needs="next_cursor")
            cursor = answer["next_cursor"]
            if answer["text"]:
                yield OutputChunk(str(answer["text"]))
            elif answer["process"]["state"] not in ("starting", "running"):
                yield _end_of(answer["process"])
                return

    def _write(self, name: str, path: str, body: Mapping[str, Any]) -> None:
        """Write input, retrying until the process has read its earlier input."""
        while True:
            try:
                self._post(name, path, body)
            except ApiRefused as error:
                if error.code != INPUT_FULL or monotonic() > self._patience.deadline:
                    raise
                self._patience.pause(PAUSE_S)
            else:
                return

    def _post(self, name: str, path: str, body: Mapping[str, Any]) -> Any:
        return post(
            self._api,
            f"{self._path}/{path}",
            body,
            key=f"{self._key}-{name}",
            needs="id",
            deadline=self._patience.deadline,
            pause=self._patience.pause,
            late="the workspace did not answer in time",
        )


def _end_of(process: Mapping[str, Any]) -> Ended:
    ended = process.get("exit") or {}
    code = ended.get("exit_code")
    if ended.get("signal"):
        return Ended(None, f"ended by {ended['signal']}")
    if code is None:
        return Ended(None, str(process.get("state")))
    return Ended(int(code), f"exit code {code}")
