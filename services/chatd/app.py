"""The composition root of chatd: opens what the process needs and serves until it is stopped."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from chatd.clients.mcpgateway import McpTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.domain.chat import WorkerId
from chatd.domain.tools import Executor
from chatd.engine.live import LiveChats
from chatd.engine.turn import TurnPorts
from chatd.engine.worker import Worker
from chatd.providers.scripted import ScriptedModel, demo
from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.errors import DOMAIN, ERRORS
from chatd.rpc.registrations import registrations
from chatd.rpc.stream_servicer import StreamServicer
from chatd.settings import Settings
from chatd.store.chats import PostgresChats
from chatd.store.schema import MIGRATIONS, SCHEMA
from parley.identity import Guard, ServiceName, Signer, SigningKey, Trust
from parley.postgres import Database, migrate
from parley.process import Environment, Process
from parley.rpc import Address, Channels, FollowedRevocations, Scheme, TlsFiles, connect, serve


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop."""
    database_url = settings.database_url.reveal()
    await migrate(database_url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    tls = None if settings.tls_directory is None else TlsFiles(settings.tls_directory)
    signer = Signer(ServiceName.CHATD, SigningKey.load(settings.signing_key_file), process.clock)

    async with AsyncExitStack() as stack:

        def channels(audience: ServiceName, addresses: tuple[Address, ...]) -> Channels:
            open_channel = partial(
                connect, audience=audience, signer=signer, telemetry=process.telemetry, tls=tls
            )
            opened = Channels(addresses, open_channel)
            stack.push_async_callback(opened.close)
            return opened

        database = await stack.enter_async_context(
            Database.open(
                database_url,
                application_name=process.instance,
                connections_max=settings.database_connections_max,
            )
        )
        gateways = channels(ServiceName.GATEWAY, settings.gateway)
        revocations = FollowedRevocations(gateways, clock=process.clock, random=process.random)
        tools = RoutedTools(
            {
                Executor.TOOLRUNNER: WorkspaceTools(
                    channels(ServiceName.TOOLRUNNER, settings.toolrunner)
                ),
                Executor.MCPGATEWAY: McpTools(
                    channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
                ),
            }
        )
        live = LiveChats()
        chats = PostgresChats(database.pool, live.moved)
        ports = TurnPorts(chats=chats, model=ScriptedModel(demo), tools=tools, live=live)
        worker = await stack.enter_async_context(
            Worker(WorkerId(process.new_id()), ports=ports, model="scripted")
        )
        background = await stack.enter_async_context(asyncio.TaskGroup())
        following = background.create_task(revocations.run())
        stack.callback(following.cancel)
        guard = Guard(
            ServiceName.CHATD,
            Trust(settings.trust_file, process.clock),
            revocations,
            process.clock,
            peers_by_certificate=settings.listen.scheme is Scheme.TLS,
        )
        await stack.enter_async_context(
            serve(
                settings.listen,
                registrations(ChatServicer(chats, worker), StreamServicer(chats, live)),
                guard=guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=process.telemetry,
                tls=tls,
                is_development=settings.environment is Environment.DEVELOPMENT,
            )
        )
        await process.stopping.wait()
