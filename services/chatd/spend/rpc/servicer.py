"""UsageService: totals of the ledger, and spend limits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

import grpc
import msgspec

from chatd.primitives.domain.errors import NotPermitted
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of
from chatd.spend.domain.limits import SpendLimit, SpendStatus, Subject, SubjectKind
from chatd.spend.domain.usage import UsageReader, UsageRow, UsageSpan
from chatd.spend.rpc.convert import (
    limit_from_proto,
    limit_to_proto,
    row_to_proto,
    span_from_proto,
    spend_status_to_proto,
    totals_to_proto,
)
from chatd.spend.store.limits import PostgresLimits
from chatd.spend.store.usage import PostgresUsage, SpenderPlace
from chatd.users.domain.grantees import Grantee, GranteeKind, Grantees
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner, require_grantees
from parley.api.chat.v1 import usage_service_pb2 as api
from parley.api.chat.v1.usage_service_pb2_grpc import UsageServiceServicer
from parley.clock import Clock

Context = grpc.aio.ServicerContext

READERS_OF_ALL = frozenset({"owner", "admin", "auditor"})


class SpendStatuses(Protocol):
    """Computes the spend status of users."""

    async def spend_status(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> SpendStatus:
        """Return the spend status of a user."""
        ...

    async def depend_on_groups(self) -> bool:
        """Return whether a limit depends on the groups of a user."""
        ...


@dataclass(frozen=True, slots=True)
class UsagePorts:
    """The dependencies of the service.

    Attributes:
        usage: The ledger.
        limits: The limits.
        spend_statuses: The spend status of users.
        groups: The groups of users.
        grantees: Checks which users and groups exist.
        limits_changed: Publishes to every process, this one included, that a limit changed.
        clock: The clock.
        names_of: Returns the names for people of a model and its provider; None if it is unknown.
    """

    usage: PostgresUsage
    limits: PostgresLimits
    spend_statuses: SpendStatuses
    groups: Groups
    grantees: Grantees
    limits_changed: Callable[[], None]
    clock: Clock
    names_of: Callable[[str], Awaitable[tuple[str, str] | None]]


class _SpenderToken(msgspec.Struct, frozen=True, array_like=True):
    cost_micros: int
    owner_id: str


class _SubjectToken(msgspec.Struct, frozen=True, array_like=True):
    kind: SubjectKind
    id: str


class UsageServicer(UsageServiceServicer):
    """Serves usage; the server's error table converts errors to problems."""

    def __init__(self, ports: UsagePorts) -> None:
        self._ports = ports

    async def GetChatUsage(
        self, request: api.GetChatUsageRequest, context: Context
    ) -> api.GetChatUsageResponse:
        """Return the totals of a chat tree, and the cost of the chat alone."""
        chat_id = fields.chat_id_of(request.chat_id)
        usage = await self._ports.usage.of_tree(chat_id, _reader())
        return api.GetChatUsageResponse(
            root_chat_id=usage.root_chat_id,
            totals=totals_to_proto(usage.totals),
            own_cost_micros=usage.own_cost_micros,
        )

    async def GetUserUsage(
        self, request: api.GetUserUsageRequest, context: Context
    ) -> api.GetUserUsageResponse:
        """Return the totals of one user's calls."""
        reader = _reader()
        user_id = OwnerId(fields.optional_uuid(request.user_id, "user_id") or reader.id)
        if user_id != reader.id and not reader.may_read_all:
            raise NotPermitted("see what others used")
        used = await self._ports.usage.of_user(user_id, self._span(request), reader)
        return api.GetUserUsageResponse(
            totals=totals_to_proto(used.totals),
            by_model=[row_to_proto(await self._named(row)) for row in used.by_model],
            by_chat=[row_to_proto(row) for row in used.by_chat],
        )

    async def _named(self, row: UsageRow) -> UsageRow:
        """Return the row of a model with its names for people, else with those of the ledger."""
        names = await self._ports.names_of(row.id)
        return row if names is None else replace(row, name=names[0], provider_name=names[1])

    async def ListUsage(
        self, request: api.ListUsageRequest, context: Context
    ) -> api.ListUsageResponse:
        """Return the totals of each user, the most expensive first."""
        length = length_of(request.page_size)
        place = place_of(request.page_token, _SpenderToken)
        after = (
            None
            if place is None
            else SpenderPlace(place.cost_micros, fields.uuid_of(place.owner_id, "page_token"))
        )
        rows = await self._ports.usage.by_user(self._span(request), after=after, length=length + 1)
        answer = api.ListUsageResponse(users=[row_to_proto(row) for row in rows[:length]])
        if len(rows) > length:
            last = rows[length - 1]
            answer.next_page_token = token_of(_SpenderToken(last.totals.cost_micros, last.id))
        return answer

    async def GetSpendStatus(
        self, request: api.GetSpendStatusRequest, context: Context
    ) -> api.GetSpendStatusResponse:
        """Return the spend status of the caller."""
        owner_id = caller_as_owner().id
        spend_statuses = self._ports.spend_statuses
        is_asked = await spend_statuses.depend_on_groups()
        group_ids = await self._ports.groups.of(owner_id) if is_asked else ()
        spend_status = await spend_statuses.spend_status(owner_id, group_ids)
        return api.GetSpendStatusResponse(status=spend_status_to_proto(spend_status))

    async def ListSpendLimits(
        self, request: api.ListSpendLimitsRequest, context: Context
    ) -> api.ListSpendLimitsResponse:
        """List all limits."""
        length = length_of(request.page_size)
        place = place_of(request.page_token, _SubjectToken)
        after = (
            None
            if place is None
            else Subject(place.kind, fields.optional_uuid(place.id, "page_token"))
        )
        limits = await self._ports.limits.page(after, length + 1)
        shown = [limit_to_proto(limit) for limit in limits[:length]]
        answer = api.ListSpendLimitsResponse(limits=shown)
        if len(limits) > length:
            last = limits[length - 1].subject
            answer.next_page_token = token_of(_SubjectToken(last.kind, last.id))
        return answer

    async def SetSpendLimit(
        self, request: api.SetSpendLimitRequest, context: Context
    ) -> api.SetSpendLimitResponse:
        """Set or remove a limit."""
        limit = limit_from_proto(request.limit)
        await self._require_subject(limit)
        await self._ports.limits.put(limit)
        self._ports.limits_changed()
        return api.SetSpendLimitResponse(limit=limit_to_proto(limit))

    async def _require_subject(self, limit: SpendLimit) -> None:
        """Require that a limit's subject exists or is already stored, unless the limit is removed.

        Raises:
            UnknownIds: there is no such user or group.
            CheckUnavailable: no gateway answers.
        """
        subject = limit.subject
        if limit.limit_micros == 0 or subject.kind is SubjectKind.EVERYONE:
            return
        if subject in {each.subject for each in await self._ports.limits.limits()}:
            return
        grantee = Grantee(GranteeKind(subject.kind.value), subject.id)
        await require_grantees(self._ports.grantees, [grantee], fields=[f"limit.{grantee.kind}_id"])

    def _span(self, request: api.GetUserUsageRequest | api.ListUsageRequest) -> UsageSpan:
        return span_from_proto(
            request.start if request.HasField("start") else None,
            request.end if request.HasField("end") else None,
            self._ports.clock.now(),
        )


def _reader() -> UsageReader:
    caller = caller_as_owner()
    return UsageReader(caller.id, may_read_all=caller.role in READERS_OF_ALL)
