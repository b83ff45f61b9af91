"""The real nginx with the configuration of this repository, over TLS."""

import os
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from parley.clock import SystemClock
from parley.identity import CertificateAuthority, ServiceName
from support.host.conditions import until
from support.host.ports import free_port

CONFIGURATION = Path(__file__).parents[3] / "deploy" / "nginx" / "parley.conf"
CERTIFICATES = "/etc/letsencrypt/live/parley.example"
MAIN = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log warn;
{user}worker_processes 1;
worker_rlimit_nofile 65536;
events {{ worker_connections 32768; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/parley.conf;
}}
"""


def nginx_program() -> str:
    """Return nginx, or skip the test that needs it."""
    found = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin")
    if found is None or shutil.which("curl") is None:
        pytest.skip("nginx or curl is not installed: run scripts/proxy as root, or install both")
    return found


@dataclass(frozen=True, slots=True)
class Nginx:
    """A running nginx.

    Attributes:
        host: The name that it serves.
        port: Its port of TLS.
        http_port: Its port without TLS.
        authority_file: The certificate of the authority that clients have to believe.
        error_log: What it complains about.
    """

    host: str
    port: int
    http_port: int
    authority_file: Path
    error_log: Path

    @property
    def url(self) -> str:
        """The public URL."""
        return f"https://{self.host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """Return what a client of it needs for TLS."""
        return ssl.create_default_context(cafile=str(self.authority_file))

    def curl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Ask it with curl."""
        return subprocess.run(
            ["curl", "--silent", "--show-error", "--cacert", str(self.authority_file), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@contextmanager
def running_nginx(
    directory: Path,
    upstream: str,
    *,
    port: int | None = None,
    host: str = "localhost",
    lifetime: timedelta = timedelta(days=90),
    changes: Mapping[str, str] | None = None,
) -> Iterator[Nginx]:
    """Run nginx in front of a gateway.

    Args:
        directory: An empty directory for its files.
        upstream: The host and port of the gateway.
        port: Its port of TLS; any free one without it.
        host: The name that it serves, which is also in its certificate.
        lifetime: How long its certificate is valid.
        changes: Texts of the configuration, and what takes their place.
    """
    program = nginx_program()
    running = Nginx(
        host,
        port or free_port(),
        free_port(),
        directory / "tls" / "ca.pem",
        directory / "error.log",
    )
    authority = CertificateAuthority.create(directory / "tls", clock=SystemClock())
    authority.issue(ServiceName.GATEWAY, (host,), lifetime).write(directory / "tls" / "leaf")
    address = "127.0.0.1" if host == "localhost" else host
    text = CONFIGURATION.read_text()
    for old, new in {
        f"{CERTIFICATES}/fullchain.pem": str(directory / "tls/leaf/certificate.pem"),
        f"{CERTIFICATES}/privkey.pem": str(directory / "tls/leaf/key.pem"),
        "parley.example": host,
        "listen 443 ": f"listen {address}:{running.port} ",
        "listen 80;": f"listen {address}:{running.http_port};",
        "server 127.0.0.1:8080;": f"server {upstream};",
        **(changes or {}),
    }.items():
        assert old in text, f"{CONFIGURATION} has no {old}"
        text = text.replace(old, new)
    (directory / "parley.conf").write_text(text)
    user = "user root;\n" if os.geteuid() == 0 else ""
    main = directory / "nginx.conf"
    main.write_text(MAIN.format(directory=directory, user=user))
    with subprocess.Popen(
        [program, "-p", str(directory), "-c", str(main), "-e", str(running.error_log)]
    ) as process:
        try:
            until(
                lambda: running.curl(f"{running.url}/healthz").returncode == 0,
                "nginx",
                within_s=30,
            )
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
