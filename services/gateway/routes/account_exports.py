"""The HTTP routes of the archives of exports."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.request_body import read_query
from gateway.identity.engine.account_exports import AccountExports
from gateway.identity.engine.archives import archive
from gateway.identity.store.account_exports import ExportStore


class AccountExportRoutes:
    """Archives of one's own exports, and of those of deactivated users."""

    def __init__(self, exports: AccountExports, store: ExportStore) -> None:
        self._exports = exports
        self._store = store

    async def own(self, request: Request, principal: Principal) -> Response:
        """Send the archive of an export of the caller."""
        return await self._archive(request, principal, principal.user.id)

    async def of_user(self, request: Request, principal: Principal) -> Response:
        """Send the archive of an export of a deactivated user."""
        return await self._archive(request, principal, path_id(request, "user_id"))

    async def _archive(self, request: Request, principal: Principal, user_id: str) -> Response:
        read_query(request)
        export_id = path_id(request, "export_id")
        record = await self._exports.find(principal.user, user_id, export_id)
        name = f"parley-{record.user_id}-{record.created_at:%Y%m%d}.zip"
        return StreamingResponse(
            archive(self._store, record),
            media_type="application/zip",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )
