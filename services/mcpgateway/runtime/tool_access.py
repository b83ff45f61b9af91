"""Whether a tool may be called: by the lists, by its definition, and by what the caller saw."""

from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.domain import Target
from mcpgateway.servers.errors import (
    NeedsConnect,
    ToolChanged,
    ToolDenied,
    ToolNotFound,
    ToolQuarantined,
    UpstreamFailed,
)


async def blocking_error(
    catalogues: CatalogueCache, target: Target, tool: str, expected_digest: str
) -> UpstreamFailed | None:
    """Return why an unavailable server cannot be called; None if the call can be made.

    Raises:
        ToolDenied: The server's lists exclude the tool.
        ToolNotFound: The server has no such tool.
        ToolQuarantined: Its definition changed, and no admin has approved it.
        ToolChanged: Its definition differs from the one the caller saw.
    """
    server = target.server
    if not server.settings.allows_tool(tool):
        raise ToolDenied(server.id, tool)
    known = catalogues.known(target)
    definition = None if known is None else known.tool(tool)
    is_current = definition is not None and expected_digest in ("", definition.digest)
    try:
        if known is None or not is_current:
            known = await catalogues.fetch(target)
        elif tool in known.quarantined:
            # Somebody may have approved it since.
            known = await catalogues.current(target)
    except UpstreamFailed as error:
        return error
    definition = known.tool(tool)
    if definition is None:
        raise ToolNotFound(server.id, tool)
    if tool in known.quarantined:
        raise ToolQuarantined(server.id, tool)
    if expected_digest not in ("", definition.digest):
        raise ToolChanged(definition.digest)
    return None


async def prepared_call(
    access: Access,
    catalogues: CatalogueCache,
    server_id: str,
    caller: CallerContext,
    tool: str,
    expected_digest: str,
) -> PreparedCall:
    """Return the server of a call; one whose user is not logged in is blocked until they are.

    Raises:
        McpError: The caller may not use it, or not this tool.
    """
    server = await access.server_for(server_id, caller)
    try:
        target = await access.open_target(server, caller)
    except NeedsConnect as error:
        target = Target(server, {}, caller.user_id, caller.context.chat_id)
        return PreparedCall(target, UpstreamFailed(error.reason, str(error)), server.version)
    blocked = await blocking_error(catalogues, target, tool, expected_digest)
    known = catalogues.known(target)
    definition = None if known is None else known.tool(tool)
    schema = None if definition is None else definition.input_schema_json
    return PreparedCall(target, blocked, server.version, schema)
