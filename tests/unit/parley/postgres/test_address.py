from pathlib import Path

import pytest

from parley.postgres import compose_url, with_database, without_password

SOCKET = compose_url(
    role="chatd", password="p@ss/w:rd", database="parley", host=Path("/run/my parley"), port=5433
)
TCP = compose_url(role="chatd", password="p", database="parley", host="db.example", port=5432)


def test_a_socket_directory_travels_in_the_query() -> None:
    assert SOCKET == (
        "postgresql://chatd:p%40ss%2Fw%3Ard@/parley?host=%2Frun%2Fmy+parley&port=5433"
    )


@pytest.mark.parametrize(("host", "written"), [("db.example", "db.example"), ("::1", "[::1]")])
def test_a_host_stands_before_its_port(host: str, written: str) -> None:
    url = compose_url(role="r", password="p", database="d", host=host, port=5432)
    assert url == f"postgresql://r:p@{written}:5432/d"


def test_another_database_keeps_everything_else() -> None:
    assert with_database(TCP, "other one") == "postgresql://chatd:p@db.example:5432/other%20one"
    assert with_database(SOCKET, "other") == SOCKET.replace("/parley?", "/other?")


def test_an_address_for_people_has_no_password() -> None:
    assert without_password(TCP) == "postgresql://chatd@db.example:5432/parley"
    assert without_password("postgresql://db.example/parley") == "postgresql://db.example/parley"
