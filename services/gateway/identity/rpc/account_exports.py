"""Serves exports of accounts to their users and to administrators."""

from collections.abc import AsyncIterator
from datetime import datetime

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.identity.engine.account_exports import AccountExports
from gateway.identity.engine.archives import archive
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from gateway.identity.store.account_exports import ExportRecord, ExportStore
from parley.api.identity.v1 import account_export_service_pb2 as api
from parley.api.identity.v1.account_export_service_pb2_grpc import AccountExportServiceServicer


class AccountExportServicer(AccountExportServiceServicer):
    """Serves exports."""

    def __init__(self, exports: AccountExports, store: ExportStore) -> None:
        self._exports = exports
        self._store = store

    async def CreateAccountExport(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateAccountExportRequest, context: grpc.aio.ServicerContext
    ) -> api.CreateAccountExportResponse:
        """Begin an export, or return the one that runs."""
        record = await self._exports.create(calling_user(), request.user_id)
        return api.CreateAccountExportResponse(export=_export_to_proto(record))

    async def ListAccountExports(  # noqa: N802 (the name is the proto's)
        self, request: api.ListAccountExportsRequest, context: grpc.aio.ServicerContext
    ) -> api.ListAccountExportsResponse:
        """List the exports of a user."""
        records = await self._exports.list(calling_user(), request.user_id)
        return api.ListAccountExportsResponse(exports=map(_export_to_proto, records))

    async def DownloadAccountExport(  # noqa: N802 (the name is the proto's)
        self, request: api.DownloadAccountExportRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.DownloadAccountExportResponse]:
        """Send the archive of an export that ended."""
        record = await self._exports.find(calling_user(), request.user_id, request.export_id)
        async for data in archive(self._store, record):
            yield api.DownloadAccountExportResponse(data=data)


def _export_to_proto(record: ExportRecord) -> api.AccountExport:
    return api.AccountExport(
        export_id=record.id,
        user_id=record.user_id,
        requested_by=record.requested_by_user_id,
        state=_state_of(record),
        entries=record.entries,
        size_bytes=record.size_bytes,
        created_at=timestamp(record.created_at),
        completed_at=_optional(record.completed_at),
        expires_at=_optional(record.expires_at),
        failure=record.failure,
    )


def _state_of(record: ExportRecord) -> "api.AccountExportState.ValueType":
    if record.completed_at is None:
        return api.ACCOUNT_EXPORT_STATE_RUNNING
    if record.failure:
        return api.ACCOUNT_EXPORT_STATE_FAILED
    return api.ACCOUNT_EXPORT_STATE_COMPLETE


def _optional(time: datetime | None) -> Timestamp | None:
    return None if time is None else timestamp(time)
