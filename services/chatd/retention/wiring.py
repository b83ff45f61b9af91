"""Wiring of the slice `retention`."""

from dataclasses import dataclass

from chatd.chats.wiring import ChatComponents
from chatd.models.domain.preferences import InstallationSettings
from chatd.models.wiring import ModelComponents
from chatd.resources import Resources
from chatd.retention.engine.rounds import RetentionPorts, RetentionRounds
from chatd.retention.rpc.servicer import RetentionServicer
from chatd.retention.store.retention import PostgresRetention


@dataclass(frozen=True, slots=True)
class RetentionComponents:
    """The components of the slice `retention`.

    Attributes:
        rounds: Archives and deletes by age.
        servicer: Serves previews.
    """

    rounds: RetentionRounds
    servicer: RetentionServicer


def open_retention(
    resources: Resources, chats: ChatComponents, catalogue: ModelComponents
) -> RetentionComponents:
    """Return the components; the rounds begin when they are run."""

    async def settings() -> InstallationSettings:
        return (await catalogue.configuration.current()).catalogue.settings

    process, store = resources.process, PostgresRetention(resources.pool)
    rounds = RetentionRounds(
        RetentionPorts(
            store,
            chats.stores.trees,
            settings,
            chats.notifier.metadata_changed,
            process.clock,
            process.random.random,
        )
    )
    return RetentionComponents(rounds, RetentionServicer(store, settings))
