import asyncio
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text

from parley.postgres import (
    DatabaseMisconfigured,
    MigrationFailed,
    SchemaTooNew,
    ServiceRole,
    migrate,
    provision,
    with_database,
)
from support.database.postgres import TestPostgres
from support.database.schema_drift import drift

FIRST = '''
"""Begin."""
import sqlalchemy as sa
from alembic import op
revision = "0001"
down_revision = None

def upgrade():
    op.create_table("shelves", sa.Column("id", sa.Integer, primary_key=True), schema="library")
    op.create_table(
        "books",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("shelf", sa.Integer, sa.ForeignKey("library.shelves.id", name="books_shelf")),
        sa.CheckConstraint("title <> ''", name="books_title_given"),
        schema="library",
    )
    op.create_index("books_by_title", "books", ["title"], schema="library")
'''
SECOND = '''
"""Go on."""
from alembic import op
revision = "0002"
down_revision = "0001"

def upgrade():
    op.execute("ALTER TABLE books ADD COLUMN pages integer NOT NULL DEFAULT 0")
    {more}
'''


def scripts_in(directory: Path, *texts: str) -> Path:
    versions = directory / "versions"
    versions.mkdir(exist_ok=True)
    for number, text in enumerate(texts, start=1):
        (versions / f"{number:04}.py").write_text(text)
    return directory


def declared() -> MetaData:
    metadata = MetaData(schema="library")
    Table("shelves", metadata, Column("id", Integer, primary_key=True))
    Table(
        "books",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("title", Text, nullable=False),
        Column("shelf", Integer, ForeignKey("library.shelves.id", name="books_shelf")),
        CheckConstraint("title <> ''", name="books_title_given"),
        Index("books_by_title", "title"),
    )
    return metadata


async def columns_of_books(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = 'library' AND table_name = 'books' ORDER BY ordinal_position"
        )
    finally:
        await connection.close()
    return [row[0] for row in rows]


async def test_a_schema_moves_forward_revision_by_revision(
    empty_database: str, tmp_path: Path
) -> None:
    scripts = scripts_in(tmp_path, FIRST)
    assert await migrate(empty_database, schema="library", scripts=scripts) == "0001"
    assert await columns_of_books(empty_database) == ["id", "title", "shelf"]
    scripts_in(tmp_path, FIRST, SECOND.format(more=""))
    assert await migrate(empty_database, schema="library", scripts=scripts) == "0002"
    assert await columns_of_books(empty_database) == ["id", "title", "shelf", "pages"]


async def test_a_schema_at_its_newest_revision_is_left_alone_without_a_lock(
    empty_database: str, tmp_path: Path
) -> None:
    scripts = scripts_in(tmp_path, FIRST)
    await migrate(empty_database, schema="library", scripts=scripts)
    connection = await asyncpg.connect(empty_database)
    try:
        await connection.execute(
            "SELECT pg_advisory_lock(hashtextextended('parley migrate library', 0))"
        )
        async with asyncio.timeout(20):
            assert await migrate(empty_database, schema="library", scripts=scripts) == "0001"
    finally:
        await connection.close()


async def test_processes_that_start_together_migrate_once(
    empty_database: str, tmp_path: Path
) -> None:
    scripts = scripts_in(tmp_path, FIRST, SECOND.format(more=""))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        runs = [
            tasks.create_task(migrate(empty_database, schema="library", scripts=scripts))
            for _ in range(5)
        ]
    assert [run.result() for run in runs] == ["0002"] * 5


async def test_a_failing_migration_leaves_the_schema_as_it_was(
    empty_database: str, tmp_path: Path
) -> None:
    scripts = scripts_in(tmp_path, FIRST)
    await migrate(empty_database, schema="library", scripts=scripts)
    scripts_in(tmp_path, FIRST, SECOND.format(more='op.execute("SELECT 1 / 0")'))
    with pytest.raises(MigrationFailed) as failure:
        await migrate(empty_database, schema="library", scripts=scripts)
    assert failure.value.reason == "division by zero"
    assert await columns_of_books(empty_database) == ["id", "title", "shelf"]


async def test_a_schema_of_a_newer_parley_is_left_alone(
    empty_database: str, tmp_path: Path
) -> None:
    scripts = scripts_in(tmp_path, FIRST, SECOND.format(more=""))
    await migrate(empty_database, schema="library", scripts=scripts)
    (scripts / "versions" / "0002.py").unlink()
    with pytest.raises(SchemaTooNew) as failure:
        await migrate(empty_database, schema="library", scripts=scripts)
    assert (failure.value.schema, failure.value.revision) == ("library", "0002")


async def test_two_schemas_keep_two_histories(empty_database: str, tmp_path: Path) -> None:
    scripts = scripts_in(tmp_path, FIRST)
    await migrate(empty_database, schema="library", scripts=scripts)
    connection = await asyncpg.connect(empty_database)
    await connection.execute("CREATE SCHEMA other")
    (tmp_path / "other" / "versions").mkdir(parents=True)
    assert await migrate(empty_database, schema="other", scripts=tmp_path / "other") is None
    rows = await connection.fetch(
        "SELECT schemaname FROM pg_tables WHERE tablename = 'alembic_version' ORDER BY 1"
    )
    await connection.close()
    assert [row[0] for row in rows] == ["library", "other"]


async def test_a_service_migrates_its_own_schema_and_cannot_make_another(
    postgres: TestPostgres, empty_database: str, tmp_path: Path
) -> None:
    name = empty_database.partition("@/")[2].partition("?")[0]
    await provision(empty_database, roles=[ServiceRole("librarian", "library", "secret")])
    url = with_database(
        postgres.server.url(role="librarian", password="secret", database="x"), name
    )
    scripts = scripts_in(tmp_path, FIRST, SECOND.format(more=""))
    assert await migrate(url, schema="library", scripts=scripts) == "0002"
    with pytest.raises(MigrationFailed):
        await migrate(url, schema="elsewhere", scripts=scripts)


async def test_a_missing_scripts_directory_is_named(empty_database: str, tmp_path: Path) -> None:
    with pytest.raises(MigrationFailed):
        await migrate(empty_database, schema="library", scripts=tmp_path)


async def test_a_wrong_password_is_not_waited_for(postgres: TestPostgres, tmp_path: Path) -> None:
    url = postgres.server.url(role="postgres", password="wrong", database="postgres")
    with pytest.raises(DatabaseMisconfigured):
        await migrate(url, schema="library", scripts=scripts_in(tmp_path, FIRST))


async def test_a_migrated_database_equals_its_declaration(
    empty_database: str, tmp_path: Path
) -> None:
    await migrate(empty_database, schema="library", scripts=scripts_in(tmp_path, FIRST))
    assert await drift(empty_database, declared(), "library") == ()


async def test_drift_names_every_difference(empty_database: str, tmp_path: Path) -> None:
    await migrate(empty_database, schema="library", scripts=scripts_in(tmp_path, FIRST))
    metadata = MetaData(schema="library")
    Table(
        "books",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("title", Integer, nullable=True),
        Column("author", Text),
        Column("shelf", Integer),
        CheckConstraint("title <> ''", name="books_title_wanted"),
    )
    Table("readers", metadata, Column("id", Integer, primary_key=True))
    assert await drift(empty_database, metadata, "library") == (
        "column library.books.author is missing in the database",
        "constraint books_title_given of library.books is only in the database",
        "constraint books_title_wanted of library.books is missing in the database",
        "foreign key books_shelf of library.books is only in the database",
        "index books_by_title of library.books is only in the database",
        "nullable of library.books.title is False in the database, declared True",
        "table library.readers is missing in the database",
        "table library.shelves is only in the database",
        "type of library.books.title is TEXT() in the database, declared Integer()",
    )
