"""Processes of agents as their parent reads them, without a node."""

from chatd.primitives.domain.ids import ChatId, Owner
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api


class StoredProcesses:
    """Processes of one chat with their outputs; without any by default."""

    def __init__(self, chat_id: str = "", **outputs: str) -> None:
        self._chat_id = chat_id
        self._outputs = outputs

    async def listed(
        self, chat_id: ChatId, owner: Owner, processes_max: int
    ) -> api.ListProcessesResponse:
        """Return the processes of the chat."""
        assert chat_id == self._chat_id
        processes = list(map(_process, self._outputs))
        return api.ListProcessesResponse(processes=processes[:processes_max], total=len(processes))

    async def output(
        self, chat_id: ChatId, owner: Owner, process_id: str, *, since: int, output_bytes: int
    ) -> api.WaitOutputResponse:
        """Return the output of a process after a cursor."""
        assert chat_id == self._chat_id
        text = self._outputs[process_id]
        output = process_pb2.ProcessOutput(text=text[since:], next_cursor=len(text))
        return api.WaitOutputResponse(process=_process(process_id), output=output)


def _process(process_id: str) -> process_pb2.Process:
    return process_pb2.Process(
        process_id=process_id, command="sleep 60", state=process_pb2.PROCESS_STATE_RUNNING
    )
