"""The program that works on files, played by its library in this process."""

from dataclasses import dataclass, field

from support.toolrunner.file_workers import InProcessFileWorker
from toolrunner.directories.workspaces import Workspaces
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.handlers import FileHandlers
from toolrunner.fileworker.protocol import Answer, Request
from toolrunner.primitives.domain import WorkspaceId


@dataclass
class InProcessFileWorkers:
    """Answers for all workspaces."""

    workspaces: Workspaces
    workers: dict[WorkspaceId, InProcessFileWorker] = field(default_factory=dict)

    def process_of(self, workspace_id: WorkspaceId) -> str:
        return ""

    async def ask(
        self, workspace_id: WorkspaceId, request: Request, *, limit_s: float = 0
    ) -> Answer:
        if workspace_id not in self.workers:
            root = Root.open_directory(str(self.workspaces.prepared(workspace_id).root))
            self.workers[workspace_id] = InProcessFileWorker(FileHandlers(root, ""))
        return self.workers[workspace_id].ask(request)[-1]

    def close(self) -> None:
        for worker in self.workers.values():
            worker.files.root.close()
