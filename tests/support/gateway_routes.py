"""The gateway's routes, put together without anything behind them."""

import asyncio
import random  # noqa: TID251 (chance is an argument here)
from typing import Any

from gateway.application import AnyRoute
from gateway.event_stream import StreamLimits
from gateway.route_table import Rooms, routes
from gateway.routes_chats import ChatRoutes
from gateway.routes_checkpoints import CheckpointRoutes
from gateway.routes_events import EventRoutes
from gateway.routes_export import ExportRoutes
from gateway.routes_files import FileRoutes
from gateway.routes_groups import GroupRoutes
from gateway.routes_messages import MessageRoutes
from gateway.routes_models import ModelRoutes
from gateway.routes_pages import PageRoutes
from gateway.routes_processes import ProcessRoutes
from gateway.routes_providers import ProviderRoutes
from gateway.routes_queue import QueueRoutes
from gateway.routes_secrets import SecretRoutes
from gateway.routes_settings import SettingsRoutes
from gateway.routes_shares import ShareRoutes
from gateway.routes_templates import TemplateRoutes
from gateway.routes_terminal import TerminalRoutes
from gateway.routes_tokens import TokenRoutes
from gateway.routes_turns import TurnRoutes
from gateway.routes_usage import UsageRoutes
from gateway.routes_users import UserRoutes
from gateway.routes_workspace_files import WorkspaceFileRoutes
from gateway.routes_workspaces import WorkspaceRoutes
from parley.clock import FakeClock

NOBODY: Any = None  # Stands for what putting routes together never asks.


def every_route() -> tuple[AnyRoute, ...]:
    """Return every route; none of them can be called."""

    def new_id() -> str:
        return "id"

    pages = PageRoutes(
        NOBODY, NOBODY, NOBODY, login_token=None, clock=FakeClock(), draining=asyncio.Event()
    )
    events = EventRoutes(
        NOBODY,
        NOBODY,
        NOBODY,
        clock=FakeClock(),
        chance=random.Random(1),
        limits=StreamLimits(),
    )
    return routes(
        Rooms(
            pages=pages,
            events=events,
            chats=ChatRoutes(NOBODY, new_id=new_id),
            messages=MessageRoutes(NOBODY, new_id=new_id),
            queue=QueueRoutes(NOBODY, new_id=new_id),
            turns=TurnRoutes(NOBODY, new_id=new_id),
            shares=ShareRoutes(NOBODY, new_id=new_id),
            export=ExportRoutes(NOBODY),
            processes=ProcessRoutes(NOBODY, new_id=new_id, draining=asyncio.Event()),
            terminal=TerminalRoutes(NOBODY, NOBODY, NOBODY, new_id=new_id, clock=FakeClock()),
            workspace_files=WorkspaceFileRoutes(NOBODY, stream=NOBODY),
            templates=TemplateRoutes(NOBODY, new_id=new_id),
            secrets=SecretRoutes(NOBODY, new_id=new_id),
            workspaces=WorkspaceRoutes(NOBODY, stream=NOBODY, new_id=new_id),
            checkpoints=CheckpointRoutes(NOBODY, new_id=new_id),
            files=FileRoutes(NOBODY, new_id=new_id, clock=FakeClock()),
            models=ModelRoutes(NOBODY, new_id=new_id),
            providers=ProviderRoutes(NOBODY, new_id=new_id),
            settings=SettingsRoutes(NOBODY, new_id=new_id),
            usage=UsageRoutes(NOBODY, new_id=new_id),
            users=UserRoutes(NOBODY, NOBODY, new_id=new_id),
            groups=GroupRoutes(NOBODY, NOBODY, NOBODY, new_id=new_id),
            tokens=TokenRoutes(NOBODY, new_id=new_id),
        )
    )
