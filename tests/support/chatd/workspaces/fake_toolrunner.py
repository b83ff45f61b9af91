"""A toolrunner without processes and disks: the fake behind the RPCs that tools are made of.

Its processes print and end when a test says so, its files are a dictionary, its journal is one too.
It keeps the contract of the protos as far as tools depend on it, and fails where a test wants it.
"""

import asyncio
import fnmatch
import hashlib
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from parley.api.workspace.v1 import (
    execution_pb2,
    execution_service_pb2,
    file_pb2,
    file_service_pb2,
    process_pb2,
    process_service_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.execution_service_pb2_grpc import (
    ExecutionServiceServicer,
    add_ExecutionServiceServicer_to_server,
)
from parley.api.workspace.v1.file_service_pb2_grpc import (
    FileServiceServicer,
    add_FileServiceServicer_to_server,
)
from parley.api.workspace.v1.process_service_pb2_grpc import (
    ProcessServiceServicer,
    add_ProcessServiceServicer_to_server,
)
from parley.rpc import Address, Channels, Problem
from parley.rpc.problem import trailers

GENERATION = "j1"
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


class FakeProcess:
    """A process that does what it is told."""

    def __init__(self, process: process_pb2.Process) -> None:
        self.process = process
        self.output = ""
        self.written = b""
        self.signals: list[int] = []


class FakeToolrunner(ProcessServiceServicer, FileServiceServicer, ExecutionServiceServicer):
    """Serves one workspace.

    Attributes:
        forbidden: Paths of files that may not be read.
        invalid: Paths that no file can have.
        scripts: What commands print, and their exit code; a command without a script runs on.
        starts: How often each request started a process.
        requests: Everything that was asked, in order.
        allowed_s: Time that the caller gave to each wait.
        lost: Methods whose next answers are lost, after they were done.
        down: Methods that do nothing and cannot be reached.
        epoch: The placement of the workspace that is here; starts for earlier ones are refused.
        is_waiting_at_start: Whether a start answers what it was asked to wait for.
        is_holding: Whether waits and searches by name block until `release` is set; otherwise
            waits time out at once.
    """

    def __init__(self) -> None:
        self.scripts: dict[str, tuple[str, int]] = {}
        self.processes: dict[str, FakeProcess] = {}
        self.files: dict[str, bytes] = {}
        self.forbidden: frozenset[str] = frozenset()
        self.invalid: frozenset[str] = frozenset()
        self.journal: dict[str, bytes] = {}
        self.starts: Counter[str] = Counter()
        self.requests: list[Any] = []
        self.allowed_s: list[float] = []
        self.lost: Counter[str] = Counter()
        self.down: Counter[str] = Counter()
        self.epoch = 0
        self.is_waiting_at_start = True
        self.is_holding = False
        self.asked = asyncio.Event()
        self.release = asyncio.Event()

    def last(self) -> FakeProcess:
        """Return the process that was started last."""
        return list(self.processes.values())[-1]

    def end(self, fake: FakeProcess, code: int = 0, output: str = "") -> None:
        """Let a process print something and end."""
        fake.output += output
        fake.process.state = process_pb2.PROCESS_STATE_EXITED
        fake.process.exit.exit_code = code
        fake.process.exit.shell_exit_code = code

    async def _arrive(self, method: str, request: Any, context: Any) -> None:
        self.requests.append(request)
        if self.down[method]:
            self.down[method] -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{method} is down")

    async def _leave(self, method: str, context: Any) -> None:
        if self.lost[method]:
            self.lost[method] -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{method} was cut")

    async def _refuse(self, context: Any, status: Any, reason: str, **facts: str) -> Any:
        message = f"refused: {reason.lower()}"
        problem = Problem(status, reason, message, facts)
        await context.abort(
            status, message, trailing_metadata=trailers(problem, domain="workspace.parley")
        )

    async def GetJournal(self, request: Any, context: Any) -> Any:  # noqa: N802
        return execution_service_pb2.GetJournalResponse(journal_generation=GENERATION)

    async def GetExecution(self, request: Any, context: Any) -> Any:  # noqa: N802
        is_known = request.key.execution_id in self.journal
        state = (
            execution_pb2.EXECUTION_STATE_FINISHED
            if is_known
            else execution_pb2.EXECUTION_STATE_NEVER_SEEN
        )
        execution = execution_pb2.Execution(execution_id=request.key.execution_id, state=state)
        return execution_service_pb2.GetExecutionResponse(execution=execution)

    async def StartProcess(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("StartProcess", request, context)
        assert not request.HasField("key") or request.key.execution_id == request.request_id
        if request.context.epoch < self.epoch:
            status = grpc.StatusCode.FAILED_PRECONDITION
            return await self._refuse(context, status, "STALE_PLACEMENT")
        known = self.journal.get(request.request_id)
        if known is None:
            self.starts[request.request_id] += 1
            process_id = str(uuid.uuid5(uuid.NAMESPACE_OID, request.request_id))
            fake = FakeProcess(
                process_pb2.Process(
                    process_id=process_id,
                    command=request.spec.command,
                    workdir=request.spec.workdir,
                    background=request.spec.background,
                    state=process_pb2.PROCESS_STATE_RUNNING,
                )
            )
            self.processes[process_id] = fake
            if request.spec.command in self.scripts:
                output, code = self.scripts[request.spec.command]
                self.end(fake, code, output)
            self.journal[request.request_id] = process_id.encode()
        fake = self.processes[self.journal[request.request_id].decode()]
        await self._leave("StartProcess", context)
        answer = process_service_pb2.StartProcessResponse(
            process=fake.process, attached=known is not None
        )
        if request.HasField("condition") and self.is_waiting_at_start:
            answer.reason = _reason(fake, request.condition)
            answer.output.CopyFrom(_output(fake, 0))
        return answer

    async def WaitOutput(self, request: Any, context: Any) -> Any:  # noqa: N802
        is_look = request.condition.until == process_pb2.WAIT_UNTIL_SNAPSHOT
        method = "look" if is_look else "WaitOutput"
        self.allowed_s.append(context.time_remaining())
        self.asked.set()
        if self.is_holding and not is_look:
            await self.release.wait()
        await self._arrive(method, request, context)
        fake = self.processes.get(request.process_id)
        if fake is None:
            return await self._refuse(context, grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND")
        return process_service_pb2.WaitOutputResponse(
            process=fake.process,
            output=_output(fake, request.since_cursor),
            reason=_reason(fake, request.condition),
        )

    async def WriteStdin(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("WriteStdin", request, context)
        fake = self.processes[request.process_id]
        if request.request_id not in self.journal:
            self.journal[request.request_id] = b"written"
            fake.written += request.data
            fake.output += f"got {request.data.decode()}"
        await self._leave("WriteStdin", context)
        return process_service_pb2.WriteStdinResponse(
            process=fake.process, output=_output(fake, 0), reason=process_pb2.WAIT_REASON_OUTPUT
        )

    async def SignalProcess(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("SignalProcess", request, context)
        fake = self.processes.get(request.process_id)
        if fake is None:
            return await self._refuse(context, grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND")
        if fake.process.state != process_pb2.PROCESS_STATE_RUNNING:
            status = grpc.StatusCode.FAILED_PRECONDITION
            return await self._refuse(context, status, "PROCESS_NOT_RUNNING")
        fake.signals.append(request.signal)
        fake.process.state = process_pb2.PROCESS_STATE_EXITED
        fake.process.exit.signal = "SIGTERM"
        fake.process.exit.shell_exit_code = 143
        return process_service_pb2.SignalProcessResponse(process=fake.process)

    async def ListProcesses(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("ListProcesses", request, context)
        wanted = set(request.states)
        found = [
            each.process
            for each in self.processes.values()
            if not wanted or each.process.state in wanted
        ]
        return process_service_pb2.ListProcessesResponse(
            processes=found[: request.page_size], total=len(found)
        )

    async def ReadFile(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("ReadFile", request, context)
        if request.path in self.forbidden:
            status = grpc.StatusCode.PERMISSION_DENIED
            return await self._refuse(context, status, "PATH_FORBIDDEN")
        if request.path in self.invalid:
            status = grpc.StatusCode.INVALID_ARGUMENT
            return await self._refuse(context, status, "INVALID_REQUEST")
        data = self.files.get(f"~/{request.path}" if request.in_home else request.path)
        if data is None:
            return await self._refuse(
                context, grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND", suggestions="a.py\nb.py"
            )
        described: dict[str, Any] = {"info": _info(request.path, data), "etag": _etag(data)}
        if not data:
            kind = file_pb2.CONTENT_KIND_EMPTY
            return file_service_pb2.ReadFileResponse(kind=kind, **described)
        if data.startswith(PNG[:8]):
            return file_service_pb2.ReadFileResponse(
                kind=file_pb2.CONTENT_KIND_IMAGE, media_type="image/png", image=data, **described
            )
        if b"\0" in data:
            kind = file_pb2.CONTENT_KIND_BINARY
            return file_service_pb2.ReadFileResponse(kind=kind, **described)
        return _page(data.decode().splitlines(), request, described)

    async def ReadBytes(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self._arrive("ReadBytes", request, context)
        data = self.files.get(request.path)
        if data is None:
            await self._refuse(context, grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")
            return
        head = file_service_pb2.BytesHead(info=_info(request.path, data), media_type="text/plain")
        yield file_service_pb2.ReadBytesResponse(head=head)
        wanted = data[request.offset_bytes :][: request.length_bytes or None]
        for start in range(0, len(wanted), 256 * 1024):
            chunk = wanted[start : start + 256 * 1024]
            yield file_service_pb2.ReadBytesResponse(chunk=chunk)
            await self._leave("ReadBytes", context)
        complete = workspace_pb2.STREAM_END_REASON_COMPLETE
        yield file_service_pb2.ReadBytesResponse(closed=workspace_pb2.StreamEnd(reason=complete))

    async def WriteFile(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("WriteFile", request, context)
        old = self.files.get(request.path)
        is_done = request.request_id in self.journal
        if request.create_only and old is not None and not is_done:
            return await self._refuse(context, grpc.StatusCode.ALREADY_EXISTS, "PATH_EXISTS")
        if request.if_etag and old is not None and request.if_etag != _etag(old):
            return await self._refuse(context, grpc.StatusCode.ABORTED, "FILE_CHANGED")
        if not is_done:
            self.starts[request.request_id] += 1
            self.files[request.path] = request.content
            created, modified = (
                file_pb2.FILE_CHANGE_KIND_CREATED,
                file_pb2.FILE_CHANGE_KIND_MODIFIED,
            )
            change = file_pb2.FileChange(
                path=request.path,
                kind=created if old is None else modified,
                etag=_etag(request.content),
                diff="+" + request.content.decode().replace("\n", "\n+"),
                added_lines=request.content.count(b"\n"),
                size_bytes=len(request.content),
            )
            self.journal[request.request_id] = change.SerializeToString()
        await self._leave("WriteFile", context)
        change = file_pb2.FileChange.FromString(self.journal[request.request_id])
        return file_service_pb2.WriteFileResponse(change=change)

    async def EditFiles(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("EditFiles", request, context)
        made, problems = dict(self.files), []
        for place, file in enumerate(request.files):
            for index, edit in enumerate(file.edits):
                text = made.get(file.path, b"").decode()
                count = text.count(edit.old_text)
                if count != 1:
                    no_match, ambiguous = (
                        file_pb2.EDIT_PROBLEM_KIND_NO_MATCH,
                        file_pb2.EDIT_PROBLEM_KIND_AMBIGUOUS,
                    )
                    problem = file_pb2.EditProblem(
                        file_index=place,
                        edit_index=index,
                        path=file.path,
                        kind=no_match if count == 0 else ambiguous,
                        message=f"the old text is there {count} times",
                        count=count,
                    )
                    problems.append(problem)
                made[file.path] = text.replace(edit.old_text, edit.new_text).encode()
        if problems:
            return file_service_pb2.EditFilesResponse(problems=problems)
        changes = [
            file_pb2.FileChange(
                path=file.path,
                kind=file_pb2.FILE_CHANGE_KIND_MODIFIED,
                etag=_etag(made[file.path]),
                diff="-old\n+new\n" * 20_000,
                added_lines=1,
                deleted_lines=1,
                stale_read=True,
            )
            for file in request.files
        ]
        if not request.dry_run:
            self.files = made
        return file_service_pb2.EditFilesResponse(applied=not request.dry_run, changes=changes)

    async def ApplyPatch(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("ApplyPatch", request, context)
        change = file_pb2.FileChange(path="a.py", kind=file_pb2.FILE_CHANGE_KIND_MODIFIED)
        return file_service_pb2.ApplyPatchResponse(applied=True, changes=[change])

    async def ListDirectory(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("ListDirectory", request, context)
        directories = sorted({path.split("/")[0] for path in self.files if "/" in path})
        entries = [
            file_pb2.DirectoryEntry(
                info=file_pb2.PathInfo(path=name, type=file_pb2.PATH_TYPE_DIRECTORY),
                depth=1,
                omitted_entries=sum(path.startswith(f"{name}/") for path in self.files),
            )
            for name in directories
        ]
        entries += [
            file_pb2.DirectoryEntry(info=_info(path, data), depth=1)
            for path, data in sorted(self.files.items())
            if "/" not in path
        ]
        return file_service_pb2.ListDirectoryResponse(
            entries=entries[: request.page_size], hidden_entries=2, next_page_token="more"
        )

    async def FindFiles(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._arrive("FindFiles", request, context)
        if self.is_holding:
            await self.release.wait()
        found = [
            file_pb2.FoundFile(info=_info(path, data))
            for path, data in sorted(self.files.items())
            if fnmatch.fnmatch(path, request.query)
        ]
        return file_service_pb2.FindFilesResponse(files=found[: request.page_size])

    async def SearchFiles(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self._arrive("SearchFiles", request, context)
        matches = files = 0
        batch = file_service_pb2.FileMatchesBatch()
        for path, data in sorted(self.files.items()):
            lines = [
                file_pb2.SearchLine(line=number, text=line, is_match=True)
                for number, line in enumerate(data.decode().splitlines(), start=1)
                if re.search(request.pattern, line)
            ]
            if lines:
                files, matches = files + 1, matches + len(lines)
                found = file_pb2.FileMatches(path=path, lines=lines, count=len(lines))
                if request.batched:
                    batch.files.append(found)
                else:
                    yield file_service_pb2.SearchFilesResponse(file=found)
        if batch.files:
            yield file_service_pb2.SearchFilesResponse(files=batch)
        summary = file_service_pb2.SearchSummary(files=files, matches=matches)
        yield file_service_pb2.SearchFilesResponse(summary=summary)


@asynccontextmanager
async def served(fake: FakeToolrunner, directory: Path) -> AsyncIterator[Channels]:
    """Serve it on a socket, and give channels to it."""
    server = grpc.aio.server()
    add_ProcessServiceServicer_to_server(fake, server)
    add_FileServiceServicer_to_server(fake, server)
    add_ExecutionServiceServicer_to_server(fake, server)
    address = Address.parse(f"unix:{directory}/fake.sock")
    server.add_insecure_port(str(address))
    await server.start()
    channels = Channels((address,), lambda each: grpc.aio.insecure_channel(str(each)))
    try:
        yield channels
    finally:
        await channels.close()
        await server.stop(None)


def _reason(
    fake: FakeProcess, condition: process_pb2.WaitCondition
) -> "process_pb2.WaitReason.ValueType":
    if fake.process.state != process_pb2.PROCESS_STATE_RUNNING:
        return process_pb2.WAIT_REASON_EXITED
    is_look = condition.until == process_pb2.WAIT_UNTIL_SNAPSHOT
    return process_pb2.WAIT_REASON_SNAPSHOT if is_look else process_pb2.WAIT_REASON_TIMEOUT


def _output(fake: FakeProcess, since: int) -> process_pb2.ProcessOutput:
    return process_pb2.ProcessOutput(text=fake.output[since:], next_cursor=len(fake.output))


def _info(path: str, data: bytes) -> file_pb2.PathInfo:
    return file_pb2.PathInfo(path=path, type=file_pb2.PATH_TYPE_FILE, size_bytes=len(data))


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _page(lines: list[str], request: Any, described: dict[str, Any]) -> Any:
    start = max(1, request.offset_line)
    page: list[str] = []
    size = 0
    for line in lines[start - 1 : start - 1 + (request.limit_lines or 2000)]:
        size += len(line.encode()) + 1
        if size > request.max_bytes:
            break
        page.append(line)
    end = start + len(page) - 1
    return file_service_pb2.ReadFileResponse(
        kind=file_pb2.CONTENT_KIND_TEXT,
        text="\n".join(page),
        start_line=start,
        end_line=end,
        total_lines=len(lines),
        has_more=end < len(lines),
        next_offset_line=end + 1 if end < len(lines) else 0,
        encoding="utf-8",
        **described,
    )
