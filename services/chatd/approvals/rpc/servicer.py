"""ApprovalService: the rules of the installation, of users and of chats."""

from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule, Scope, ScopeKind
from chatd.approvals.rpc.convert import FIELDS, rule_to_proto, rule_with
from chatd.approvals.store.rules import PostgresRules, new_rule_id
from chatd.chats.domain.references import NO_SUCH_SERVER, McpServers
from chatd.chats.rpc.methods import with_read_only_errors
from chatd.models.rpc.administration import page_of
from chatd.models.rpc.fields import masked, version_of
from chatd.primitives.domain.errors import InvalidRequest, NotPermitted, UnknownIds
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import approval_pb2
from parley.api.chat.v1 import approval_service_pb2 as api
from parley.api.chat.v1.approval_service_pb2_grpc import ApprovalServiceServicer
from parley.telemetry import audit

Context = grpc.aio.ServicerContext
Request = (
    api.ListApprovalRulesRequest
    | api.CreateApprovalRuleRequest
    | api.UpdateApprovalRuleRequest
    | api.DeleteApprovalRuleRequest
)

ADMINISTRATORS: Final = frozenset({"owner", "admin"})


class ApprovalServicer(ApprovalServiceServicer):
    """Serves approval rules; the server's error table converts errors to problems.

    Args:
        rules: The rules.
        servers: The MCP servers of users.
        is_shared: Returns whether the caller may read a chat of another owner.
    """

    def __init__(
        self,
        rules: PostgresRules,
        servers: McpServers,
        is_shared: Callable[[ChatId], Awaitable[bool]],
    ) -> None:
        self._rules = rules
        self._servers = servers
        self._is_shared = is_shared

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._is_shared(chat_id)

    async def ListApprovalRules(
        self, request: api.ListApprovalRulesRequest, context: Context
    ) -> api.ListApprovalRulesResponse:
        """List the rules of a scope; those of the installation for every user."""
        scope = await self._scope(request, caller_as_owner())
        listed = list(await self._rules.of_scope(scope))
        page, token = page_of(listed, lambda rule: rule.id, request.page_size, request.page_token)
        return api.ListApprovalRulesResponse(rules=map(rule_to_proto, page), next_page_token=token)

    @with_read_only_errors
    async def CreateApprovalRule(
        self, request: api.CreateApprovalRuleRequest, context: Context
    ) -> api.CreateApprovalRuleResponse:
        """Create a rule."""
        caller = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        scope = await self._scope(request, caller, is_change=True)
        blank = Rule(new_rule_id(caller.id, key.key), scope, Effect.ASK)
        rule = rule_with(blank, request.rule, frozenset(FIELDS))
        await self._require_server(rule.server_id, rule.id, caller)
        stored = await self._rules.create(rule, key.body_hash)
        _audit("approval_rule.created", caller, stored)
        return api.CreateApprovalRuleResponse(rule=rule_to_proto(stored))

    @with_read_only_errors
    async def UpdateApprovalRule(
        self, request: api.UpdateApprovalRuleRequest, context: Context
    ) -> api.UpdateApprovalRuleResponse:
        """Update a rule."""
        caller = caller_as_owner()
        changed = masked(tuple(request.update_mask.paths), FIELDS)
        scope = await self._scope(request, caller, is_change=True)
        rule_id = fields.uuid_of(request.rule.id, "rule.id")
        if "server_id" in changed and request.rule.server_id:
            known = {rule.id: rule.server_id for rule in await self._rules.of_scope(scope)}
            # The server that the rule has already may have been deleted since.
            if known.get(rule_id) != request.rule.server_id:
                await self._require_server(request.rule.server_id, rule_id, caller)
        stored = await self._rules.update(
            scope,
            rule_id,
            lambda rule: rule_with(rule, request.rule, changed),
            version_of(request.rule.etag, "rule.etag"),
        )
        _audit("approval_rule.changed", caller, stored)
        return api.UpdateApprovalRuleResponse(rule=rule_to_proto(stored))

    @with_read_only_errors
    async def DeleteApprovalRule(
        self, request: api.DeleteApprovalRuleRequest, context: Context
    ) -> api.DeleteApprovalRuleResponse:
        """Delete a rule."""
        caller = caller_as_owner()
        scope = await self._scope(request, caller, is_change=True)
        rule_id = fields.uuid_of(request.rule_id, "rule_id")
        await self._rules.delete(scope, rule_id)
        audit(
            "approval_rule.deleted",
            user_id=caller.id,
            rule_id=rule_id,
            scope=scope.kind.value,
            scope_id=scope.id,
        )
        return api.DeleteApprovalRuleResponse()

    async def _require_server(self, server_id: str, rule_id: str, caller: Owner) -> None:
        """Check that an MCP server exists for the caller; one that is switched off is accepted.

        Raises:
            UnknownIds: There is none.
            CheckUnavailable: No mcpgateway answers.
        """
        if not server_id:
            return
        # No chat is asked for: the id only selects which mcpgateway answers.
        refused = await self._servers.refused(ChatId(rule_id), caller, (server_id,), ())
        if refused.get(server_id) == NO_SUCH_SERVER:
            raise UnknownIds("MCP server", {"rule.server_id": NO_SUCH_SERVER})

    async def _scope(self, request: Request, caller: Owner, *, is_change: bool = False) -> Scope:
        """Return the scope that a request names.

        Raises:
            NotPermitted: Only administrators change the rules of the installation.
            ChatNotFound: There is no such chat of the caller.
            InvalidRequest: The scope is not known, or names a chat that it is not for.
        """
        if request.scope == approval_pb2.APPROVAL_SCOPE_CHAT:
            chat_id = fields.chat_id_of(request.chat_id)
            await self._rules.require_root(chat_id, caller.id)
            return Scope(ScopeKind.CHAT, chat_id)
        if request.chat_id:
            raise InvalidRequest("chat_id", "is for rules of a chat")
        if request.scope == approval_pb2.APPROVAL_SCOPE_USER:
            return Scope(ScopeKind.USER, caller.id)
        if request.scope != approval_pb2.APPROVAL_SCOPE_INSTALLATION:
            raise InvalidRequest("scope", "is not known")
        if is_change and caller.role not in ADMINISTRATORS:
            raise NotPermitted("change the approval rules of the installation")
        return INSTALLATION


def _audit(event: str, caller: Owner, rule: Rule) -> None:
    # What users and chats write into their own rules would outlive them in the log.
    is_for_all = rule.scope.kind is ScopeKind.INSTALLATION
    audit(
        event,
        user_id=caller.id,
        rule_id=rule.id,
        scope=rule.scope.kind.value,
        scope_id=rule.scope.id,
        effect=rule.effect.value,
        tool=rule.tool if is_for_all else "",
        command=rule.command if is_for_all else "",
        server_id=rule.server_id,
    )
