"""ContextService over stored chats, with a workspace whose instruction files never change."""

from functools import partial

from chatd.chats.rpc.methods import shares_of
from chatd.chats.store.stores import Stores
from chatd.content.domain.instructions import InstructionSet
from chatd.content.domain.parts import ContextFile
from chatd.content.domain.tools import Tools
from chatd.instructions.engine.pins import InstructionPins
from chatd.instructions.rpc.servicer import ContextPorts, ContextServicer
from chatd.instructions.store.instructions import PostgresInstructions
from chatd.instructions.store.skills import PostgresSkills
from chatd.models.domain.profile import ModelProfile
from chatd.models.store.config_version import ConfigChanges
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.turns.domain.turn import TurnSetup
from chatd.users.domain.groups import Groups
from parley.postgres import Pool
from support.chatd.turns.fixed_setups import FixedSetups
from support.chatd.workspaces.served_catalogue import Facts


class FixedInstructionFiles:
    """The same files in every workspace."""

    async def read(self, chat_id: ChatId, owner: Owner) -> InstructionSet:
        """Return the files."""
        return InstructionSet((ContextFile("AGENTS.md", "be kind"),))


def context_servicer(pool: Pool, stores: Stores, groups: Groups, tools: Tools) -> ContextServicer:
    """Return the servicer."""
    pins = InstructionPins(FixedInstructionFiles(), PostgresInstructions(pool), lambda _: None)
    return ContextServicer(
        ContextPorts(
            stores.ownership.require,
            partial(shares_of, stores, groups),
            stores.chats.history,
            Facts(pool).chat,
            pins,
            FixedSetups(TurnSetup(ModelProfile("model"))),
            tools,
            PostgresSkills(ConfigChanges(pool)),
        )
    )
