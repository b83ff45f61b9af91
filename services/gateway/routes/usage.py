"""HTTP routes of usage and spend limits."""

from collections.abc import Callable, Mapping
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.usage import (
    limit_to_json,
    period_to_proto,
    rows_to_json,
    status_to_json,
    totals_to_json,
    user_usage_to_json,
)
from gateway.api.inputs.models import NewSpendLimit
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import chat_id_of, group_id_of, user_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import refuse_condition
from gateway.http.request_body import (
    idempotency_key,
    invalid_parameter,
    moment,
    read_json,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import usage_pb2
from parley.api.chat.v1 import usage_service_pb2 as api


class UsageRoutes:
    """The routes about usage and limits."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def of_chat(self, request: Request, principal: Principal) -> Response:
        """Return the totals of a chat tree."""
        read_query(request)
        chat_id = chat_id_of(request)
        asked = api.GetChatUsageRequest(chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.usage.GetChatUsage(asked)
        )
        document = {"root_chat_id": answer.root_chat_id, "totals": totals_to_json(answer.totals)}
        return json_response(document)

    async def own(self, request: Request, principal: Principal) -> Response:
        """Return the usage of the caller."""
        return await self._of_user(request, principal, user_id="")

    async def of_user(self, request: Request, principal: Principal) -> Response:
        """Return the usage of a user."""
        return await self._of_user(request, principal, user_id=user_id_of(request))

    async def list(self, request: Request, principal: Principal) -> Response:
        """List the usage of all users, the most expensive first."""
        query = read_query(request, "start", "end", "limit", "cursor")
        page, (start, end) = page_request(query), _span(query)
        asked = api.ListUsageRequest(
            start=start, end=end, page_size=page.page_size, page_token=page.page_token
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.usage.ListUsage(asked)
        )
        return json_response(page_to_json(rows_to_json(answer.users), answer.next_page_token))

    async def spend_status(self, request: Request, principal: Principal) -> Response:
        """Return the spend status of the caller."""
        read_query(request)
        asked = api.GetSpendStatusRequest()
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.usage.GetSpendStatus(asked)
        )
        return json_response(status_to_json(answer.status))

    async def list_limits(self, request: Request, principal: Principal) -> Response:
        """List all limits."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = api.ListSpendLimitsRequest(page_size=page.page_size, page_token=page.page_token)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.usage.ListSpendLimits(asked)
        )
        items = map(limit_to_json, answer.limits)
        return json_response(page_to_json(items, answer.next_page_token))

    async def put_limit(self, request: Request, principal: Principal) -> Response:
        """Set the spend limit of a user, a group or everyone."""
        read_query(request)
        refuse_condition(request)
        limit = _subject(request)
        body = await read_json(request, NewSpendLimit)
        limit.limit_micros = body.limit_micros
        limit.period = period_to_proto(body.period)
        return json_response(limit_to_json(await self._set_limit(request, principal, limit)))

    async def delete_limit(self, request: Request, principal: Principal) -> Response:
        """Remove a limit."""
        read_query(request)
        refuse_condition(request)
        await self._set_limit(request, principal, _subject(request))
        return Response(status_code=204)

    async def _set_limit(
        self, request: Request, principal: Principal, limit: usage_pb2.SpendLimit
    ) -> usage_pb2.SpendLimit:
        key = idempotency_key(request) or self._new_id()
        asked = api.SetSpendLimitRequest(request_id=key, limit=limit)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.usage.SetSpendLimit(asked)
        )
        return answer.limit

    async def _of_user(self, request: Request, principal: Principal, *, user_id: str) -> Response:
        start, end = _span(read_query(request, "start", "end"))
        asked = api.GetUserUsageRequest(user_id=user_id, start=start, end=end)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.usage.GetUserUsage(asked)
        )
        return json_response(user_usage_to_json(answer))


def _subject(request: Request) -> usage_pb2.SpendLimit:
    """Return the subject that the path names: a user, a group or everyone."""
    if "user_id" in request.path_params:
        return usage_pb2.SpendLimit(user_id=user_id_of(request))
    if "group_id" in request.path_params:
        return usage_pb2.SpendLimit(group_id=group_id_of(request))
    return usage_pb2.SpendLimit(everyone=True)


def _span(query: Mapping[str, str]) -> tuple[Timestamp | None, Timestamp | None]:
    start, end = moment(query, "start"), moment(query, "end")
    if start is not None and end is not None and end < start:
        raise invalid_parameter("end", "Give a time that is not before start.")
    return _timestamp(start), _timestamp(end)


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
