"""Events of chatd reach the chain of a real gateway, each once."""

from pathlib import Path

from chatd.schema import MIGRATIONS, SCHEMA
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.delivery import AuditDelivery
from parley.audit_log.outbox import record
from parley.identity import ServiceName
from parley.postgres import Database, migrate
from parley.rpc import Channels, connect
from parley.telemetry import InMemoryTelemetry
from support.database.postgres import TestPostgres, empty_database, postgres
from support.gateway.stack import gateway_stack, migrate_identity

__all__ = ["empty_database", "postgres"]

USER_ID = "00000000-0000-0000-0000-00000000000a"


async def test_an_event_is_delivered_once_however_often_it_is_sent(
    tmp_path: Path, postgres: TestPostgres, empty_database: str
) -> None:
    await migrate(empty_database, schema=SCHEMA, scripts=MIGRATIONS)
    async with (
        postgres.database(template="identity", prepare=migrate_identity) as identity,
        gateway_stack(tmp_path, identity, has_chatd=False) as stack,
        Database.open(empty_database, application_name="test", connections_max=2) as database,
    ):
        telemetry = InMemoryTelemetry("chatd").telemetry
        gateways = Channels(
            (stack.gateway.grpc.address,),
            lambda address: connect(
                address,
                audience=ServiceName.GATEWAY,
                signer=stack.chatd_signer,
                telemetry=telemetry,
            ),
        )
        delivery = AuditDelivery(database.pool, SCHEMA, gateways, stack.clock)
        async with database.pool.acquire() as connection, connection.transaction():
            details = {"provider_id": "p"}
            event = AuditEvent(AuditAction.PROVIDER_CREATED, "p", USER_ID, USER_ID, details)
            await record(connection, SCHEMA, event)
        kept = await database.pool.fetch("SELECT * FROM chat.audit_outbox")
        first = await delivery.deliver()
        # As if the process had died before it could delete what was delivered.
        await database.pool.execute(
            """INSERT INTO chat.audit_outbox (id, at, action, outcome, object_id, actor_user_id,
                subject_user_id, details, address)
            VALUES ($1, $2, 'provider.created', 'done', 'p', $3, $3, '{"provider_id": "p"}', '')""",
            kept[0]["id"],
            kept[0]["at"],
            USER_ID,
        )
        again = await delivery.deliver()
        left = await database.pool.fetchval("SELECT count(*) FROM chat.audit_outbox")
        listed = await stack.owner.request("GET", "/api/v1/audit-log?action=provider")
        verified = await stack.owner.request("GET", "/api/v1/audit-log/verification")
        for channel in gateways.all():
            await channel.close()

    (entry,) = listed.json()["items"]
    assert (first, again, left) == (1, 1, 0)
    assert (entry["service"], entry["action"], entry["object_id"]) == (
        "chatd",
        "provider.created",
        "p",
    )
    assert (entry["id"], entry["actor_id"], entry["subject_id"], entry["details"]) == (
        str(kept[0]["id"]),
        USER_ID,
        USER_ID,
        {"provider_id": "p"},
    )
    assert verified.json()["is_intact"]
