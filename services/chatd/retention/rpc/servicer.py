"""RetentionService: what retention does and would do."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import grpc

from chatd.models.domain.preferences import InstallationSettings
from chatd.primitives.rpc.times import time_to_proto
from chatd.retention.domain.retention import DueStep, Step, due_steps, policy_of
from chatd.retention.engine.rounds import FIRST_ID, FOREVER
from chatd.retention.store.retention import DayCounts, PostgresRetention
from parley.api.chat.v1 import retention_service_pb2 as api
from parley.api.chat.v1.retention_service_pb2_grpc import RetentionServiceServicer

Context = grpc.aio.ServicerContext

TREES_PER_PAGE = 1000
ITEMS_MAX = 1000
DAYS_MAX = 31
STEP = {step: api.RetentionStep.Value(f"RETENTION_STEP_{step.name}") for step in Step}


class RetentionServicer(RetentionServiceServicer):
    """Serves previews; they read page by page and change nothing."""

    def __init__(
        self,
        store: PostgresRetention,
        settings: Callable[[], Awaitable[InstallationSettings]],
    ) -> None:
        self._store = store
        self._settings = settings

    async def PreviewRetention(
        self, request: api.PreviewRetentionRequest, context: Context
    ) -> api.PreviewRetentionResponse:
        """Return what would be done now, and the counts of what was done."""
        given = {field.name: value for field, value in request.ListFields()}
        settings = replace(await self._settings(), **given)
        counts: Counter[Step] = Counter()
        items: list[api.RetentionItem] = []
        policy = policy_of(settings)
        age_min = policy.youngest if policy.youngest is not None else FOREVER
        page = await self._store.trees(FIRST_ID, age_min, TREES_PER_PAGE)
        while page.now is not None:
            for due in due_steps(page.trees, policy, page.now):
                counts[due.step] += 1
                if len(items) < ITEMS_MAX:
                    items.append(_item(due))
            last_id = page.trees[-1].root_chat_id
            page = await self._store.trees(last_id, age_min, TREES_PER_PAGE)
        return api.PreviewRetentionResponse(
            auto_archive_days=settings.auto_archive_days,
            retention_days=settings.retention_days,
            retention_notice_days=settings.retention_notice_days,
            counts=[api.RetentionStepCount(step=STEP[step], chats=counts[step]) for step in Step],
            items=items,
            days=map(_day, await self._store.counts(DAYS_MAX)),
        )


def _item(due: DueStep) -> api.RetentionItem:
    return api.RetentionItem(
        chat_id=due.tree.root_chat_id,
        owner_id=due.tree.owner_id,
        step=STEP[due.step],
        at=time_to_proto(due.at),
    )


def _day(counts: DayCounts) -> api.RetentionDay:
    return api.RetentionDay(
        day=counts.day.isoformat(),
        noticed=counts.noticed,
        withdrawn=counts.withdrawn,
        archived=counts.archived,
        purged=counts.purged,
    )
