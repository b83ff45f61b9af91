"""Transfers all objects of a schema to the role that owns it, as needed after restoring a dump.

A dump that is restored under another name, on another server or by another role leaves tables that
belong to another role. The role of the service then may not even read them.
"""

from dataclasses import dataclass

import asyncpg

from parley.postgres.errors import NotOwned
from parley.postgres.session import quoted

# A schema, and its objects that have an owner of their own. Left out are dependent objects: those
# of an extension, the sequence of a column, the row type of a table, an array type.
OBJECTS_OF_OTHERS = """
    WITH of_extensions AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
    linked_sequences AS (
        SELECT objid FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
            AND deptype IN ('a', 'i')
    ),
    objects AS (
        SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW'
                WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END
            AS kind, oid::regclass::text AS name, relowner AS owner_id,
            'pg_class'::regclass AS class_id, oid AS object_id
        FROM pg_class
        WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'S', 'v', 'm', 'f')
            AND NOT (relkind = 'S' AND oid IN (SELECT objid FROM linked_sequences))
        UNION ALL
        SELECT 'SCHEMA', oid::regnamespace::text, nspowner, 'pg_namespace'::regclass, oid
        FROM pg_namespace WHERE oid = $1::regnamespace
        UNION ALL
        SELECT 'ROUTINE', oid::regprocedure::text, proowner, 'pg_proc'::regclass, oid
        FROM pg_proc WHERE pronamespace = $1::regnamespace
        UNION ALL
        SELECT 'TYPE', t.oid::regtype::text, t.typowner, 'pg_type'::regclass, t.oid
        FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.typnamespace = $1::regnamespace
            AND (t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND c.relkind = 'c'))
        UNION ALL
        SELECT 'STATISTICS', $1::text || '.' || quote_ident(stxname), stxowner,
            'pg_statistic_ext'::regclass, oid
        FROM pg_statistic_ext WHERE stxnamespace = $1::regnamespace
    )
    SELECT kind, name, pg_get_userbyid(owner_id) AS owner FROM objects
    WHERE owner_id <> (SELECT oid FROM pg_roles WHERE rolname = $2)
        AND (class_id, object_id) NOT IN (SELECT classid, objid FROM of_extensions)
    -- Only who may create in the schema can be given what is in it.
    ORDER BY kind <> 'SCHEMA', kind, name
"""


@dataclass(frozen=True, slots=True)
class _Object:
    """An object with an owner; its name is quoted for SQL."""

    kind: str
    name: str
    owner: str


async def take_ownership(
    admin: "asyncpg.Connection[asyncpg.Record]", *, schema: str, role: str
) -> int:
    """Transfer `schema` and its objects to `role`, within the transaction of `admin`.

    Returns how many objects belonged to another role.

    Raises:
        NotOwned: the administrator's role may not do it; the text says which role may and how.
    """
    # With an empty search path names include their schema.
    await admin.execute("SET LOCAL search_path = ''")
    rows = await admin.fetch(OBJECTS_OF_OTHERS, quoted(schema), role)
    found = [_Object(row["kind"], row["name"], row["owner"]) for row in rows]
    for each in found:
        try:
            await admin.execute(f"ALTER {each.kind} {each.name} OWNER TO {quoted(role)}")
        except asyncpg.InsufficientPrivilegeError as error:
            owners = tuple(sorted({each.owner for each in found} - {role}))
            raise NotOwned(schema, role, owners, len(found)) from error
    return len(found)
