"""The egress listeners of a node, one for each workspace, and the routes of processes to them."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Protocol, Self

from parley.tasks import BackgroundTasks, Supervision
from toolrunner.egress.domain.errors import Reason, Refused, SecretUnavailable
from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.policy import Rules
from toolrunner.egress.domain.variables import variables_of
from toolrunner.egress.proxy import Proxy
from toolrunner.primitives.domain import ProcessId, WorkspaceId

BACKLOG: Final = 128
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ProxyEndpoint:
    """The proxy's listener for one workspace on the node's own loopback.

    Attributes:
        port: The port.
        token: The token that requests must contain, since other processes can connect too.
    """

    port: int
    token: str = field(repr=False)


@dataclass(slots=True)
class _Listener:
    rules: Rules
    endpoint: ProxyEndpoint | None = None
    loopback_server: asyncio.Server | None = None
    namespace_server: asyncio.Server | None = None
    connections: "set[asyncio.Task[None]]" = field(default_factory=set)


class ProxyListeners:
    """The egress listeners of a node; those that are open on exit are closed.

    A workspace is identified by the socket that it connects to. One with its own network namespace
    has a listener that was created inside; others share the loopback and send a token.

    Args:
        proxy: Serves the connections.
        new_token: Generates the token of a workspace.
        supervision: Isolates the failure of one connection from the others.
    """

    def __init__(
        self, proxy: Proxy, new_token: Callable[[], str], supervision: Supervision
    ) -> None:
        self._proxy = proxy
        self._new_token = new_token
        self._listeners: dict[WorkspaceId, _Listener] = {}
        self._tasks = BackgroundTasks(supervision)
        self._stack = AsyncExitStack()
        self._is_over = False

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._tasks)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        for workspace_id in tuple(self._listeners):
            self.close(workspace_id)
        await _everything_scheduled()
        await self._stack.aclose()

    async def open(self, rules: Rules) -> ProxyEndpoint:
        """Open the listener of a workspace with its rules; an open listener gets the new rules.

        Connections under older rules are cancelled. The token of `rules` is not used.
        """
        listener = self._listener(rules.workspace_id)
        listener.rules = rules
        _cut_off(listener)
        if listener.endpoint is None:
            bound = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
            listener.endpoint = ProxyEndpoint(bound.getsockname()[1], self._new_token())
            listener.loopback_server = await self._serving(listener, bound, listener.endpoint.token)
            self._check(listener, listener.loopback_server)
        return listener.endpoint

    def take_listener(self, workspace_id: WorkspaceId, listener_fd: int) -> None:
        """Serve connections to the listener of a network namespace, and own the socket.

        A listener may arrive before its rules. All requests are refused until then.
        """
        bound = socket.socket(fileno=listener_fd)
        if self._is_over:
            bound.close()
            return
        listener = self._listener(workspace_id)
        opening = self._tasks.create_task(self._open_listener(listener, bound))
        # A task that is cancelled before it started closes nothing itself.
        opening.add_done_callback(lambda done: bound.close() if done.cancelled() else None)

    def endpoint_of(self, workspace_id: WorkspaceId) -> ProxyEndpoint | None:
        """Return the listener of a workspace on the node's loopback, if there is one."""
        listener = self._listeners.get(workspace_id)
        return None if listener is None else listener.endpoint

    def rules_of(self, workspace_id: WorkspaceId) -> Rules | None:
        """Return the rules of a workspace that has a listener."""
        listener = self._listeners.get(workspace_id)
        return None if listener is None else listener.rules

    def close(self, workspace_id: WorkspaceId) -> None:
        """Close the listeners of a workspace and cancel its connections; idempotent."""
        listener = self._listeners.pop(workspace_id, None)
        if listener is None:
            return
        for server in (listener.loopback_server, listener.namespace_server):
            if server is not None:
                _close(server)
        _cut_off(listener)

    def _listener(self, workspace_id: WorkspaceId) -> _Listener:
        return self._listeners.setdefault(workspace_id, _Listener(Rules(workspace_id)))

    async def _open_listener(self, listener: _Listener, bound: socket.socket) -> None:
        opened = await self._serving(listener, bound, "")
        before, listener.namespace_server = listener.namespace_server, opened
        if before is not None:
            _close(before)
        self._check(listener, opened)

    def _check(self, listener: _Listener, server: asyncio.Server) -> None:
        """Close a server that started to listen while its workspace was closed."""
        if self._listeners.get(listener.rules.workspace_id) is not listener:
            _close(server)

    async def _serving(
        self, listener: _Listener, bound: socket.socket, token: str
    ) -> asyncio.Server:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._listeners.get(listener.rules.workspace_id) is not listener:
                # It was accepted just before the listener was closed.
                writer.transport.abort()
                return
            rules = replace(listener.rules, token=token)
            task = self._tasks.create_task(self._serve_connection(listener, rules, reader, writer))
            listener.connections.add(task)
            task.add_done_callback(listener.connections.discard)
            # A task that is cancelled before it started closes nothing itself.
            task.add_done_callback(lambda _: writer.transport.abort())

        limit = self._proxy.limits.head_bytes
        try:
            return await asyncio.start_server(connected, sock=bound, limit=limit)
        except BaseException:
            bound.close()
            raise

    async def _serve_connection(
        self,
        listener: _Listener,
        rules: Rules,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        most = self._proxy.limits.connections
        if len(listener.connections) > most:
            problem = f"This workspace has {most} connections already."
            await self._proxy.refuse(rules, writer, Refused(Reason.TOO_MANY, problem))
        else:
            await self._proxy.serve(rules, reader, writer)


def _cut_off(listener: _Listener) -> None:
    for connection in listener.connections:
        connection.cancel()


def _close(server: asyncio.Server) -> None:
    """Stop listening.

    A connection that was accepted but not yet passed to its handler would be lost, and stay open,
    if the server were closed in between; so it is closed after all callbacks that are scheduled
    now.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    loop.call_soon(server.close)


async def _everything_scheduled() -> None:
    """Return after all callbacks that are scheduled now have run."""
    loop = asyncio.get_running_loop()
    happened = loop.create_future()
    loop.call_soon(happened.set_result, None)
    await happened


@dataclass(frozen=True, slots=True)
class EgressRoute:
    """The egress route of one workspace.

    Attributes:
        endpoint: The proxy's listener for it.
        grants: Secrets that the proxy adds for it.
    """

    endpoint: ProxyEndpoint
    grants: tuple[Grant, ...] = ()

    def variables(self, *, is_apart: bool, has_proxy: bool) -> Mapping[str, str]:
        """Return variables that point a process to the proxy; none contains a secret.

        Args:
            is_apart: Whether the process is in its own network namespace, with a listener.
            has_proxy: Whether all its requests must use the proxy, or only those that need secrets.
        """
        if not has_proxy and not self.grants:
            return {}
        if is_apart:
            return variables_of(self.grants, has_proxy=has_proxy)
        return variables_of(
            self.grants, port=self.endpoint.port, token=self.endpoint.token, has_proxy=has_proxy
        )


class EgressRoutes(Protocol):
    """Returns the egress routes of workspaces."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return the open egress route of a workspace, or None if it has none."""
        ...

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return the secrets that a process gets as variables.

        Raises:
            SecretUnavailable: One of them is not available.
        """
        ...

    def variable_grants(self, workspace_id: WorkspaceId) -> tuple[Grant, ...]:
        """Return the grants of secrets that processes get as variables."""
        ...

    async def secret_text(
        self, workspace_id: WorkspaceId, process_id: ProcessId, grant: Grant
    ) -> str:
        """Return a secret that a process has as a variable.

        Raises:
            SecretUnavailable: It is not available.
        """
        ...


class NoEgress:
    """No workspace has an egress route."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return None."""
        return None

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return none."""
        return {}

    def variable_grants(self, workspace_id: WorkspaceId) -> tuple[Grant, ...]:
        """Return none."""
        return ()

    async def secret_text(
        self, workspace_id: WorkspaceId, process_id: ProcessId, grant: Grant
    ) -> str:
        """Raise.

        Raises:
            SecretUnavailable: Always.
        """
        raise SecretUnavailable(grant.name, "this workspace has no egress route", is_final=True)
