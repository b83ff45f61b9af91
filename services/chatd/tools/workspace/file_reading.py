"""The tool that reads files."""

import base64
import json
from typing import Annotated, Final

from msgspec import Meta

from chatd.content.domain.tools import Outcome
from chatd.tools.workspace.arguments import Input
from chatd.tools.workspace.call import Call, look, without_empty
from chatd.tools.workspace.paths import FilePath, checked
from chatd.tools.workspace.results import succeeded
from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api

LINES_MAX: Final = 10_000
LINES: Final = 2000
PAGE_BYTES_MAX: Final = 64 * 1024
#: Reserved for the fields besides the lines.
BESIDE_BYTES: Final = 1024

DESCRIPTION: Final = (
    "Read a file of the workspace. Text comes in pages of numbered lines (number, tab, line); the "
    "numbers are not part of the file. If has_more is true, go on with offset set to next_offset. "
    "Pictures are shown to you, of PDF documents the text; other files are only described. Keep "
    "the etag to have a later write or edit refused if the file changed meanwhile."
)


class ReadFileInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `read_file`."""

    path: FilePath
    offset: Annotated[
        int, Meta(ge=1, le=2**53, description="First line to return, counted from 1.")
    ] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES_MAX, description="Most lines to return.")] = LINES


async def read_file(call: Call, given: ReadFileInput) -> Outcome:
    """Return a page of a text file, an image, or the type of any other file."""
    answer = await look(
        call,
        call.files.ReadFile,
        api.ReadFileRequest(
            context=call.context,
            path=checked(given.path),
            offset_line=given.offset,
            limit_lines=given.limit,
            max_bytes=min(PAGE_BYTES_MAX, call.budget_bytes - BESIDE_BYTES),
        ),
    )
    match answer.kind:
        case file_pb2.CONTENT_KIND_TEXT | file_pb2.CONTENT_KIND_PDF:
            return _page(answer, call.budget_bytes - BESIDE_BYTES)
        case file_pb2.CONTENT_KIND_EMPTY:
            fields = {**_described(answer, "empty"), "content": "", "total_lines": 0}
            return succeeded(fields, notes=("The file is empty.",))
        case file_pb2.CONTENT_KIND_IMAGE if answer.image:
            return _picture(answer)
        case file_pb2.CONTENT_KIND_IMAGE:
            step = "It is too large to be shown; make it smaller with a command by execute."
            return succeeded(_described(answer, "image"), next_step=step)
        case _:
            step = "It is not text: look into it with a command by execute, such as xxd or strings."
            return succeeded(_described(answer, "binary"), next_step=step)


def _described(answer: api.ReadFileResponse, kind: str) -> dict[str, object]:
    return {
        "path": answer.info.path,
        "kind": kind,
        "size_bytes": answer.info.size_bytes,
        **without_empty({"media_type": answer.media_type, "etag": answer.etag}),
    }


def _picture(answer: api.ReadFileResponse) -> Outcome:
    picture = {
        "type": "image",
        "media_type": answer.media_type,
        "data": base64.b64encode(answer.image).decode(),
    }
    return succeeded({"content": [picture], **_described(answer, "image")})


def _page(answer: api.ReadFileResponse, budget_bytes: int) -> Outcome:
    """Return as many whole lines as fit; the rest is on the next page."""
    count = answer.end_line - answer.start_line + 1
    lines = answer.text.split("\n")[: max(0, count)]
    numbered: list[str] = []
    for number, line in enumerate(lines, start=answer.start_line):
        told = f"{number}\t{line}"
        budget_bytes -= len(json.dumps(told, ensure_ascii=False).encode())
        if budget_bytes < 0 and numbered:
            break
        numbered.append(told)
    is_cut = len(numbered) < len(lines)
    next_offset = answer.start_line + len(numbered) if is_cut else answer.next_offset_line
    has_more = is_cut or answer.has_more
    fields = {
        **_described(answer, "pdf" if answer.kind == file_pb2.CONTENT_KIND_PDF else "text"),
        "content": "\n".join(numbered),
        "start_line": answer.start_line,
        "end_line": answer.start_line + len(numbered) - 1,
        "has_more": has_more,
        **({"total_lines": answer.total_lines} if answer.HasField("total_lines") else {}),
        **({"encoding": answer.encoding} if answer.encoding not in ("", "utf-8") else {}),
        **({"next_offset": next_offset} if has_more else {}),
    }
    clipped = without_empty({"clipped_lines": answer.clipped_lines})
    step = f"read_file with offset={next_offset} goes on." if has_more else ""
    return succeeded(fields, truncation=clipped, next_step=step)
