from pathlib import Path

import pytest

from gateway.http.addresses import HttpAddress, PublicUrl
from gateway.settings import GatewaySettings
from parley.rpc import Address
from parley.settings import Secret, SettingsError, read

ENVIRONMENT = {
    "GATEWAY_LISTEN": "unix:/run/parley/gateway.sock",
    "GATEWAY_TRUST_FILE": "/etc/parley/trust.json",
    "GATEWAY_SIGNING_KEY_FILE": "/etc/parley/gateway.pem",
    "GATEWAY_HTTP_LISTEN": "127.0.0.1:8080",
    "GATEWAY_PUBLIC_URL": "https://parley.example",
    "GATEWAY_ALLOWED_HOSTS": "one.example, two.example",
    "GATEWAY_DATABASE_URL": "postgresql://gateway@db/parley",
    "GATEWAY_CHATD": "unix:/run/parley/chatd-0.sock,tls:chatd:7000",
    "GATEWAY_OWNER_API_KEY": "pk_x",
    "GATEWAY_TLS_DIRECTORY": "/etc/parley/tls",
}


def test_settings_come_from_the_environment() -> None:
    settings = read(GatewaySettings, ENVIRONMENT, prefix="GATEWAY")

    assert settings == GatewaySettings(
        listen=Address.parse("unix:/run/parley/gateway.sock"),
        trust_file=Path("/etc/parley/trust.json"),
        signing_key_file=Path("/etc/parley/gateway.pem"),
        http_listen=HttpAddress("127.0.0.1", 8080),
        public_url=PublicUrl("https", "parley.example", None),
        allowed_hosts=("one.example", "two.example"),
        database_url=Secret("postgresql://gateway@db/parley"),
        chatd=(
            Address.parse("unix:/run/parley/chatd-0.sock"),
            Address.parse("tls:chatd:7000"),
        ),
        owner_api_key=Secret("pk_x"),
        tls_directory=Path("/etc/parley/tls"),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEWAY_HTTP_LISTEN", "8080"),
        ("GATEWAY_HTTP_LISTEN", "::1:8080"),
        ("GATEWAY_HTTP_LISTEN", "localhost:99999"),
        ("GATEWAY_PUBLIC_URL", "parley.example"),
        ("GATEWAY_PUBLIC_URL", "https://parley.example/path"),
        ("GATEWAY_PUBLIC_URL", "https://user@parley.example"),
        ("GATEWAY_CHATD", "chatd:7000"),
        ("GATEWAY_MCPGATEWAY", "nonsense"),
        ("GATEWAY_TLS_DIRECTORY", ""),
        ("GATEWAY_AUDIT_RETENTION_DAYS", "29"),
        ("GATEWAY_AUDIT_RETENTION_DAYS", "30"),
    ],
)
def test_a_wrong_value_names_its_setting(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(GatewaySettings, ENVIRONMENT | {name: value}, prefix="GATEWAY")

    assert [problem.split()[0] for problem in refused.value.problems] == [name]


def test_addresses_and_urls_are_written_as_they_were_read() -> None:
    texts = ("[::1]:80", "localhost:0")
    urls = ("http://[::1]:8080", "https://parley.example")

    assert tuple(str(HttpAddress.parse(text)) for text in texts) == texts
    assert tuple(str(PublicUrl.parse(url)) for url in urls) == urls
