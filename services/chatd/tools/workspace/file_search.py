"""Tools that find files: by directory, by name, by content."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from chatd.content.domain.tools import Outcome
from chatd.tools.workspace.arguments import BadArguments, Input
from chatd.tools.workspace.call import HEADROOM_S, Call, look, without_empty
from chatd.tools.workspace.paths import DirectoryPath, checked
from chatd.tools.workspace.results import succeeded
from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api

SEARCH_S: Final = 30.0
ENTRIES_MAX: Final = 200

LIST_DESCRIPTION: Final = (
    "List a directory of the workspace, one to three levels deep, directories first and with a "
    "slash behind them. What is hidden or ignored by git is left out unless asked for. Go on with "
    "page_token if there is a next_page_token."
)
FIND_DESCRIPTION: Final = (
    "Find files by name, at any depth: by a pattern such as src/**/*.py, newest change first, or "
    "by a few letters of the name in order (fuzzy), best fit first."
)
SEARCH_DESCRIPTION: Final = (
    "Search the content of files with a regular expression (ripgrep) or plain text (literal). "
    "Returns lines grouped by file, or only files, or counts. Narrow it by paths, globs and types "
    "rather than reading many matches; what git ignores is left out unless asked for."
)

CASES: Final = {
    "smart": api.CASE_MODE_SMART,
    "sensitive": api.CASE_MODE_SENSITIVE,
    "insensitive": api.CASE_MODE_INSENSITIVE,
}
MODES: Final = {
    "matches": api.SEARCH_MODE_MATCHES,
    "files": api.SEARCH_MODE_FILES,
    "count": api.SEARCH_MODE_COUNT,
}
FIND_MODES: Final = {"glob": api.FIND_MODE_GLOB, "fuzzy": api.FIND_MODE_FUZZY}

PageToken = Annotated[
    str, Meta(max_length=4096, description="The next_page_token of the page before this one.")
]
Ignored = Annotated[bool, Meta(description="Include what is hidden or ignored by git.")]
Short = Annotated[str, Meta(max_length=4096)]


class ListFilesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `list_files`."""

    path: DirectoryPath = ""
    depth: Annotated[int, Meta(ge=1, le=3, description="Levels to list.")] = 1
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most entries to list.")] = ENTRIES_MAX
    include_hidden: Annotated[bool, Meta(description="Include names that begin with a dot.")] = (
        False
    )
    include_ignored: Annotated[bool, Meta(description="Include what git ignores.")] = False
    page_token: PageToken = ""


class FindFilesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `find_files`."""

    query: Annotated[
        str, Meta(min_length=1, max_length=500, description="The pattern, or letters of the name.")
    ]
    mode: Annotated[
        Literal["glob", "fuzzy"], Meta(description="How the query is compared with names.")
    ] = "glob"
    path: DirectoryPath = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most files to return.")] = 100
    include_ignored: Ignored = False
    page_token: PageToken = ""


class SearchFilesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `search_files`."""

    pattern: Annotated[str, Meta(min_length=1, max_length=1000, description="What to search for.")]
    literal: Annotated[bool, Meta(description="Take the pattern as plain text.")] = False
    paths: Annotated[
        list[Short],
        Meta(
            max_length=100,
            description="Files and directories to search; left out: all but files over 32 MiB, "
            "which have to be named.",
        ),
    ] = field(default_factory=list)
    globs: Annotated[
        list[Short],
        Meta(max_length=50, description="Names to search, such as *.py, or not to, such as !*.md."),
    ] = field(default_factory=list)
    types: Annotated[
        list[Short],
        Meta(max_length=20, description="Kinds of files to search, such as py, ts or md."),
    ] = field(default_factory=list)
    case: Annotated[
        Literal["smart", "sensitive", "insensitive"],
        Meta(description="Whether case counts; smart: only if the pattern has capitals."),
    ] = "smart"
    context: Annotated[int, Meta(ge=0, le=20, description="Lines to show around each match.")] = 0
    multiline: Annotated[bool, Meta(description="Let a match span several lines.")] = False
    output_mode: Annotated[
        Literal["matches", "files", "count"],
        Meta(description="Return matching lines, only the files, or matches per file."),
    ] = "matches"
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most matches, or files, to return.")] = (
        100
    )
    include_ignored: Ignored = False


async def list_files(call: Call, given: ListFilesInput) -> Outcome:
    """List a directory."""
    answer = await look(
        call,
        call.files.ListDirectory,
        api.ListDirectoryRequest(
            context=call.context,
            path=checked(given.path),
            depth=given.depth,
            page_size=given.limit,
            page_token=given.page_token,
            include_hidden=given.include_hidden,
            include_ignored=given.include_ignored,
        ),
    )
    page = _fitting([_entry(entry) for entry in answer.entries], call.budget_bytes)
    fields = {"entries": page, **without_empty({"next_page_token": answer.next_page_token})}
    left_out = without_empty(
        {"hidden_entries": answer.hidden_entries, "omitted": len(answer.entries) - len(page)}
    )
    return succeeded(
        fields,
        truncation=left_out,
        next_step=_next_page("list_files", answer.next_page_token)
        or ("" if page else "There is nothing here; find_files looks everywhere."),
    )


async def find_files(call: Call, given: FindFilesInput) -> Outcome:
    """Find files by name."""
    answer = await look(
        call,
        call.files.FindFiles,
        api.FindFilesRequest(
            context=call.context,
            query=given.query,
            mode=FIND_MODES[given.mode],
            path=checked(given.path),
            page_size=given.limit,
            page_token=given.page_token,
            include_ignored=given.include_ignored,
        ),
    )
    page = _fitting([found.info.path for found in answer.files], call.budget_bytes)
    step = _next_page("find_files", answer.next_page_token)
    if not page:
        step = "Nothing fits; try mode fuzzy, a wider pattern, or include_ignored."
    return succeeded(
        {"files": page, **without_empty({"next_page_token": answer.next_page_token})},
        truncation=without_empty(
            {"search_cut_short": answer.truncated, "omitted": len(answer.files) - len(page)}
        ),
        next_step=step,
    )


async def search_files(call: Call, given: SearchFilesInput) -> Outcome:
    """Search the content of files."""
    if "\n" in given.pattern and not given.multiline:
        raise BadArguments("pattern: it has a line break", "set multiline to match across lines")
    request = api.SearchFilesRequest(
        context=call.context,
        pattern=given.pattern,
        literal=given.literal,
        paths=[checked(path, "paths") for path in given.paths],
        globs=given.globs,
        types=given.types,
        case_mode=CASES[given.case],
        context_lines=given.context,
        multiline=given.multiline,
        mode=MODES[given.output_mode],
        limit=given.limit,
        include_ignored=given.include_ignored,
        timeout_ms=round(SEARCH_S * 1000),
        batched=True,
    )

    async def search(request: api.SearchFilesRequest, **options: Any) -> _Findings:
        findings: list[file_pb2.FileMatches] = []
        summary = api.SearchSummary()
        async for each in call.files.SearchFiles(request, **options):
            match each.WhichOneof("kind"):
                case "files":
                    findings.extend(each.files.files)
                case "file":
                    findings.append(each.file)
                case "summary":
                    summary = call.noted(each.summary)
        return findings, summary

    findings, summary = await look(call, search, request, SEARCH_S + HEADROOM_S)
    return _searched(findings, summary, given, call.budget_bytes)


_Findings = tuple[list[file_pb2.FileMatches], api.SearchSummary]


def _searched(
    findings: Sequence[file_pb2.FileMatches],
    summary: api.SearchSummary,
    given: SearchFilesInput,
    budget_bytes: int,
) -> Outcome:
    match given.output_mode:
        case "files":
            told = [found.path for found in findings]
        case "count":
            told = [f"{found.path}: {found.count}" for found in findings]
        case _:
            told = [_lines(found) for found in findings]
    page = _fitting(told, budget_bytes)
    left_out = without_empty(
        {
            "may_be_more": summary.truncated,
            "out_of_time": summary.timed_out,
            "omitted_files": len(told) - len(page),
        }
    )
    step = "Narrow it by paths, globs or types, or raise limit." if left_out else ""
    if not told:
        step = "Nothing matches; try literal, case insensitive, or include_ignored."
    fields = {"results": page, "files": summary.files, "matches": summary.matches}
    return succeeded(fields, truncation=left_out, next_step=step)


def _entry(entry: file_pb2.DirectoryEntry) -> str:
    info = entry.info
    match info.type:
        case file_pb2.PATH_TYPE_DIRECTORY:
            more = f" ({entry.omitted_entries} inside)" if entry.omitted_entries else ""
            return f"{info.path}/{more}"
        case file_pb2.PATH_TYPE_SYMLINK:
            return f"{info.path} -> {info.link_target}"
        case file_pb2.PATH_TYPE_SPECIAL:
            return f"{info.path} (no file: a pipe, a socket or a device)"
        case _:
            return f"{info.path} ({info.size_bytes} bytes)"


def _lines(found: file_pb2.FileMatches) -> str:
    """Return the lines of a file in the format of grep: `:` after a match, `-` after context."""
    lines = [f"{each.line}{':' if each.is_match else '-'}{each.text}" for each in found.lines]
    return "\n".join((found.path, *lines))


def _fitting(texts: list[str], budget_bytes: int) -> list[str]:
    """Return the first texts, as many as fit into half of a result."""
    left_bytes = budget_bytes // 2
    for place, text in enumerate(texts):
        left_bytes -= len(text.encode()) + 4
        if left_bytes < 0:
            return texts[: max(1, place)]
    return texts


def _next_page(tool: str, token: str) -> str:
    return f"{tool} with this next_page_token as page_token goes on." if token else ""
