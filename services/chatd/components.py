"""The opened components of chatd, as its servicers and loops use them."""

from dataclasses import dataclass

from chatd.approvals.wiring import ApprovalComponents
from chatd.chats.wiring import ChatComponents
from chatd.hooks.wiring import HookComponents
from chatd.instructions.engine.pins import InstructionPins
from chatd.models.wiring import ModelComponents
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.push.wiring import PushComponents
from chatd.resources import Resources
from chatd.retention.wiring import RetentionComponents
from chatd.spend.wiring import SpendComponents
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.wiring import StreamComponents
from chatd.turns.wiring import WorkerComponents
from chatd.workspaces.wiring import WorkspaceComponents
from parley.tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a chatd process.

    Attributes:
        worker: Runs the chats that this process owns.
        streams: Streams events to readers.
        flush_timer: Runs deferred writes periodically.
        tasks: Background loops that run while the process serves; a failure of one does not end the
            process.
    """

    resources: Resources
    chats: ChatComponents
    approvals: ApprovalComponents
    hooks: HookComponents
    push: PushComponents
    catalogue: ModelComponents
    spend: SpendComponents
    suspension: UserSuspension
    workspaces: WorkspaceComponents
    worker: WorkerComponents
    instructions: InstructionPins
    streams: StreamComponents
    retention: RetentionComponents
    flush_timer: FlushTimer
    tasks: BackgroundTasks
