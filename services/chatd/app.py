"""The composition root of chatd: opens what the process needs and serves until it is stopped."""

import asyncio
from contextlib import AsyncExitStack

from chatd.clients.mcpgateway import McpTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.domain.chat import ChatId, ChatState, WorkerId
from chatd.domain.tools import Executor
from chatd.engine.live import LiveChats
from chatd.engine.turn import TurnPorts
from chatd.engine.worker import Worker
from chatd.providers.scripted import ScriptedModel, demo
from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.errors import DOMAIN, ERRORS
from chatd.rpc.stream_servicer import StreamServicer
from chatd.settings import Settings
from chatd.store.chats import PostgresChats
from chatd.store.schema import MIGRATIONS, SCHEMA
from parley.bus import Bus, Notice, PostgresBus, Resync
from parley.identity import ServiceName
from parley.postgres import Database, migrate
from parley.process import Neighbours, Process

TOPIC = "chat"


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop."""
    database_url = settings.database_url.reveal()
    await migrate(database_url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    neighbours = Neighbours(settings, process)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                database_url,
                application_name=process.instance,
                connections_max=settings.database_connections_max,
            )
        )
        toolrunners = await stack.enter_async_context(
            neighbours.channels(ServiceName.TOOLRUNNER, settings.toolrunner)
        )
        mcpgateways = await stack.enter_async_context(
            neighbours.channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
        )
        tools = RoutedTools(
            {
                Executor.TOOLRUNNER: WorkspaceTools(toolrunners),
                Executor.MCPGATEWAY: McpTools(mcpgateways),
            }
        )
        live = LiveChats()
        bus = await stack.enter_async_context(
            PostgresBus.open(database_url, application_name=process.instance, clock=process.clock)
        )

        def moved(state: ChatState) -> None:
            live.moved(state)
            bus.publish(Notice(TOPIC, state.chat_id, state.snapshot_version))

        chats = PostgresChats(database.pool, moved)
        ports = TurnPorts(chats=chats, model=ScriptedModel(demo), tools=tools, live=live)
        worker = await stack.enter_async_context(
            Worker(WorkerId(process.new_id()), ports=ports, model="scripted")
        )
        background = await stack.enter_async_context(asyncio.TaskGroup())
        listening = background.create_task(listen(bus, live))
        stack.callback(listening.cancel)
        revocations = await stack.enter_async_context(neighbours.revocations(settings.gateway))
        servicers = (ChatServicer(chats, worker), StreamServicer(chats, live))
        await stack.enter_async_context(
            neighbours.serve(servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN)
        )
        await process.stopping.wait()


async def listen(bus: Bus, live: LiveChats) -> None:
    """Wake watchers here when a chat moves in another process."""
    async with bus.subscribe(TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, chat_id, version):
                    live.heard(ChatId(chat_id), version)
                case Resync():
                    live.heard_of_gap()
