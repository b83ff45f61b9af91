"""Uploads that take long: no user has all places, and none holds one for ever."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest

from chatd.files.rpc.servicer import SILENCE_S
from chatd.files.rpc.upload_slots import UPLOADS_MAX
from parley.api.chat.v1 import file_pb2
from parley.api.chat.v1 import file_service_pb2 as api
from parley.identity import User, UserId
from parley.rpc import Problem, acting_for, problem_of
from support.chatd.chats.chat_people import Person
from support.chatd.chats.served_chats import ServedChats

CONTENT = b"hello"


class SlowUploads:
    """Uploads whose last bytes come when they may."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.may_end = asyncio.Event()

    async def upload(self, person: Person, request_id: str) -> file_pb2.File:
        async def pieces() -> AsyncIterator[api.UploadFileRequest]:
            head = api.UploadHead(request_id=request_id, name="notes.txt", media_type="text/plain")
            yield api.UploadFileRequest(head=head)
            self.begun.release()
            await self.may_end.wait()
            yield api.UploadFileRequest(chunk=CONTENT)

        with acting_for(User(UserId(person.id), person.role)):
            answer = await person.files.UploadFile(pieces())
        file: file_pb2.File = answer.file
        return file


async def test_slow_uploads_of_one_user_leave_places_to_others(served: ServedChats) -> None:
    slow, quick = SlowUploads(), SlowUploads()
    quick.may_end.set()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        uploads = [
            tasks.create_task(slow.upload(served.ann, f"slow {number}"))
            for number in range(UPLOADS_MAX + 1)
        ]
        for _ in uploads:
            await slow.begun.acquire()
        other = await quick.upload(served.bob, "quick")
        slow.may_end.set()
    assert other.size_bytes == len(CONTENT)
    assert len({task.result().id for task in uploads}) == UPLOADS_MAX + 1


async def test_an_upload_that_falls_silent_is_given_up(served: ServedChats) -> None:
    async def refused() -> Problem:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SlowUploads().upload(served.ann, "silent")
        return problem_of(caught.value)

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        uploading = tasks.create_task(refused())
        while not uploading.done():
            # It waits for the head first, and may have it by now.
            served.clock.advance(SILENCE_S)
            await asyncio.to_thread(lambda: None)
    problem = uploading.result()
    assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": "piece"})
    assert "upload the file again" in problem.message
