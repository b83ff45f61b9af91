import pytest

from parley.rpc import Address, AddressInvalid, Scheme


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/parley/chatd.sock", Address(Scheme.UNIX, "/run/parley/chatd.sock")),
        ("tcp:127.0.0.1:7001", Address(Scheme.TCP, "127.0.0.1:7001")),
        (" tls:chatd.example:7001 ", Address(Scheme.TLS, "chatd.example:7001")),
        ("tls:[::1]:0", Address(Scheme.TLS, "[::1]:0")),
    ],
)
def test_the_three_schemes_are_read_and_written_alike(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:7001",
        "http://localhost",
        "unix:relative.sock",
        "unix:/run/",
        "unix:/run/\0.sock",
        "unix:/" + "x" * 107,
        "tcp:host",
        "tcp::7001",
        "tcp:host:port",
        "tcp:host:65536",
        "tcp:host:-1",
        "tcp:::1:7001",
        "tls:ho st:1",
    ],
)
def test_text_that_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid) as raised:
        Address.parse(text)
    assert raised.value.text == text


def test_an_invalid_address_is_a_value_error_so_that_settings_can_report_it() -> None:
    with pytest.raises(ValueError, match="write unix:/PATH"):
        Address.parse("nonsense")


def test_grpc_is_told_the_target_it_understands() -> None:
    addresses = ("unix:/run/a.sock", "tcp:localhost:1", "tls:[::1]:2")
    targets = tuple(Address.parse(text).target for text in addresses)
    assert targets == ("unix:/run/a.sock", "localhost:1", "[::1]:2")


def test_host_and_port_are_taken_apart() -> None:
    address = Address.parse("tls:[::1]:70")
    assert (address.host, address.port) == ("::1", 70)
    assert address.with_port(71) == Address.parse("tls:[::1]:71")


@pytest.mark.parametrize(
    ("text", "is_local"),
    [
        ("unix:/run/a.sock", True),
        ("tcp:localhost:1", True),
        ("tcp:127.3.2.1:1", True),
        ("tcp:[::1]:1", True),
        ("tcp:0.0.0.0:1", False),
        ("tcp:10.0.0.1:1", False),
        ("tcp:chatd:1", False),
    ],
)
def test_an_address_knows_whether_it_stays_on_the_machine(text: str, is_local: bool) -> None:
    assert Address.parse(text).is_local is is_local


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("tls:parley-chatd-1..3:7002", [f"tls:parley-chatd-{number}:7002" for number in (1, 2, 3)]),
        ("tcp:10.0.0.9..10:1", ["tcp:10.0.0.9:1", "tcp:10.0.0.10:1"]),
        ("tls:chatd-4..4:7002", ["tls:chatd-4:7002"]),
        ("tls:chatd-1:7002", ["tls:chatd-1:7002"]),
        ("unix:/run/1..2/chatd.sock", ["unix:/run/1..2/chatd.sock"]),
    ],
)
def test_a_range_means_an_address_for_each_number(text: str, meant: list[str]) -> None:
    assert list(Address.expanded(text)) == meant


@pytest.mark.parametrize("text", ["tls:chatd-3..1:7002", "tls:chatd-1..257:7002"])
def test_a_range_that_is_none_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        Address.expanded(text)
