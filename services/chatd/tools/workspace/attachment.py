"""The tool that attaches a file of the workspace to the chat."""

import uuid
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from msgspec import Meta

from chatd.content.domain.errors import TooManyFiles
from chatd.content.domain.files import FILE_BYTES_MAX, PLAIN, clean_name, sniffed
from chatd.content.domain.parts import File
from chatd.content.domain.tools import Outcome
from chatd.models.domain.language_model import FileData
from chatd.tools.workspace.arguments import Input
from chatd.tools.workspace.call import Call, look
from chatd.tools.workspace.paths import FilePath, checked
from chatd.tools.workspace.results import failed, succeeded
from parley.api.workspace.v1 import file_service_pb2 as api

READ_S: Final = 60.0

DESCRIPTION: Final = (
    "Attach a file of the workspace to the chat, so that the user can download it even when the "
    "workspace is gone: reports, pictures, archives. At most 10 MiB. It is a copy; later changes "
    "of the file do not change it."
)


class AttachFileInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `attach_file`."""

    path: FilePath
    name: Annotated[
        str, Meta(max_length=255, description="The name to show; left out: that of the file.")
    ] = ""


async def attach_file(call: Call, given: AttachFileInput) -> Outcome:
    """Copy a file to the chat; a repeated call finds the existing copy."""
    head, data = await look(
        call,
        _reader(call),
        api.ReadBytesRequest(
            context=call.context, path=checked(given.path), length_bytes=FILE_BYTES_MAX + 1
        ),
        READ_S,
    )
    if not data:
        hint = "Write something into it first."
        return failed("The file is empty, so there is nothing to attach.", "FILE_EMPTY", hint)
    if max(head.info.size_bytes, len(data)) > FILE_BYTES_MAX:
        hint = "Attach a part of it, or compress it with a command by execute."
        return failed("The file is larger than 10 MiB.", "FILE_TOO_LARGE", hint)
    if len(data) < head.info.size_bytes:
        hint = "Call it again; if this goes on, something writes to the file."
        return failed("The file could not be read to its end.", "FILE_CUT_OFF", hint)
    name = clean_name(given.name or PurePosixPath(given.path).name)
    told = head.media_type
    media_type = sniffed(name, data) if told in ("", PLAIN) else told
    file = FileData(name, media_type, data)
    file_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"attachment of {call.request_id}"))
    execution = call.execution
    try:
        await call.attachment_store.keep(execution.claim, execution.owner.id, file_id, file)
    except TooManyFiles as error:
        hint = "Put several files into one archive, or tell the user where they are."
        return failed(str(error), "TOO_MANY_FILES", hint)
    return succeeded(
        {
            "path": head.info.path or given.path,
            "file_id": file_id,
            "name": name,
            "media_type": media_type,
            "size_bytes": len(data),
        },
        files=(File(file_id, media_type, name),),
    )


def _reader(call: Call) -> Any:
    async def read(request: api.ReadBytesRequest, **options: Any) -> tuple[api.BytesHead, bytes]:
        head, chunks = api.BytesHead(), []
        async for piece in call.files.ReadBytes(request, **options):
            if piece.HasField("head"):
                head = piece.head
            elif piece.HasField("chunk"):
                chunks.append(piece.chunk)
        return head, b"".join(chunks)

    return read
