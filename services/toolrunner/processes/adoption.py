"""Adoption of the processes of an earlier run of the service, which was killed."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.records import LIVE, ProcessRecord, StdinMode
from toolrunner.journal.thread import JournalThread
from toolrunner.processes.adopted_masks import AdoptedMasks
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.monitor import ProcessMonitor
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import LOG_BYTES, OutputLog
from toolrunner.processes.ownership import Ownership
from toolrunner.processes.registry import Registry
from toolrunner.processes.start import start_error_of
from toolrunner.spawner.client.spawner import Adopted, Spawner

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Adoption:
    """Adopts the processes that the spawner kept.

    Attributes:
        encode_started: Encodes a process as the response of the method that started it.
        ownership: Ends processes that need an owner: theirs was attached to the earlier service.
        masks: Masks the secrets in the output of adopted processes.
    """

    journal: JournalThread
    spawner: Spawner
    registry: Registry
    workspaces: Workspaces
    monitor: ProcessMonitor
    clock: Clock
    encode_started: Callable[[ProcessRecord], bytes]
    ownership: Ownership
    masks: AdoptedMasks

    async def take_over(self, adopted: Iterable[Adopted]) -> None:
        """Continue processes that are in the journal; end the others, which have no owner."""
        for each in adopted:
            record = await self.registry.find(each.process_id)
            if record is None:
                each.launched.close()
                self.monitor.tasks.create_task(self._end(each))
            else:
                await self._go_on(record, each)

    async def _end(self, stranger: Adopted) -> None:
        await self.spawner.end(stranger.process_id, grace_s=0)
        await self.spawner.forget(stranger.process_id)

    async def _go_on(self, record: ProcessRecord, adopted: Adopted) -> None:
        live = self._entered(record)
        now = self.clock.now()
        if record.state not in LIVE:
            live.connect(adopted.launched)
            # A descendant may print still.
            self.masks.add(live)
            live.exited_before()
            self.monitor.tasks.create_task(self.monitor.settle(live))
            return
        if adopted.failure is not None:
            live.fail(start_error_of(adopted.failure, record.command, record.workdir), now=now)
            adopted.launched.close()
            live.close()
            self.monitor.tasks.create_task(self.monitor.settle(live))
        else:
            live.run(adopted.launched)
            self.masks.add(live)
            self._tend(live, adopted)
            if record.needs_owner:
                self.ownership.end(record.process_id)
        present = self.registry.present(live)
        response = self.encode_started(present)
        await self.journal.run(lambda journal: journal.finish_start(present, response))

    def _entered(self, record: ProcessRecord) -> LiveProcess:
        directory = self.workspaces.prepared(record.workspace_id).logs
        limit = record.log_bytes_max or LOG_BYTES
        try:
            output = KeptOutput.resumed(OutputLog.reopened(directory, record.process_id, limit))
        except OSError as error:
            logger.warning("output of before is lost: %s", error.strerror)
            output = KeptOutput(OutputLog(directory, record.process_id, limit))
        age_s = (self.clock.now() - record.started_at) / timedelta(seconds=1)
        live = LiveProcess(
            record, output, self.clock.monotonic() - max(0.0, age_s), self.registry.pipes
        )
        # Whether a person typed into it is not in the journal.
        live.is_typed_into = record.stdin_mode is StdinMode.TERMINAL and not record.chat_id
        self.registry.enter(live)
        return live

    def _tend(self, live: LiveProcess, adopted: Adopted) -> None:
        record = live.record
        if record.stdin_mode is StdinMode.CLOSED:
            # The rest of its initial input was lost with the earlier service process.
            self.monitor.end_input(live)
        if adopted.exit is not None:
            self.monitor.exited(record.process_id, adopted.exit)
            return
        self.spawner.watch(record.process_id, self.monitor.exited)
        if record.timeout_s:
            age_s = (self.clock.now() - record.started_at) / timedelta(seconds=1)
            self.monitor.limit_time(live, max(0.001, record.timeout_s - age_s))
