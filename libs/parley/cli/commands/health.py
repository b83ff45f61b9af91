"""`parley health`: one health check of one service, for container engines and load balancers."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.options import HomeCommand
from parley.cli.stack.plan import Readiness, Sign
from parley.cli.supervision.readiness import reason_not_ready
from parley.identity import CertificateFiles, CertificateUnreadable, ServiceName, server_name

ANSWER_S_MAX = 3.0
HEALTH_PATH = "/healthz"


@click.command(cls=HomeCommand)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--service",
    type=click.Choice([name.value for name in ServiceName]),
    help="Who answers at a tls: one.",
)
@click.option(
    "--tls", "tls_directory", type=click.Path(path_type=Path), metavar="DIR",
    help="Certificate to show at a tls: one.",
)  # fmt: skip
@click.option("--accepts", "is_accepting_enough", is_flag=True, help="A connection is enough.")
def health(
    targets: tuple[str, ...],
    service: str | None,
    tls_directory: Path | None,
    is_accepting_enough: bool,
) -> None:
    """Ask each TARGET whether it is well; exit code 1 when one is not.

    A target is an address of gRPC (unix:, tcp: or tls:) or an http:// URL, whose path is /healthz
    unless it has one.
    """
    for target in targets:
        if not target.startswith(("http://", "unix:", "tcp:", "tls:")):
            raise ConfigurationProblem(
                f"{target} is no address; give unix:/PATH, tcp:HOST:PORT, tls:HOST:PORT or an "
                "http:// URL. For processes of this machine use `parley status`"
            )
        if is_accepting_enough:
            problem = _problem(Sign.ACCEPTS, target)
        elif target.startswith("http://"):
            problem = _problem(Sign.HTTP_OK, _with_path(target))
        elif not target.startswith("tls:"):
            problem = _problem(Sign.GRPC_HEALTH, target)
        elif service is None or tls_directory is None:
            raise ConfigurationProblem(f"{target} needs --service NAME and --tls DIR")
        else:
            problem = asyncio.run(_tls_problem(target, ServiceName(service), tls_directory))
        if problem is not None:
            raise CliError(f"{target} is not well: {problem}")
        click.echo(f"{target} is well")


def _with_path(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.path.strip("/") else parts._replace(path=HEALTH_PATH).geturl()


def _problem(sign: Sign, target: str) -> str | None:
    async def found() -> str | None:
        async with asyncio.timeout(ANSWER_S_MAX):
            return await reason_not_ready(Readiness(sign, target))

    try:
        return asyncio.run(found())
    except TimeoutError:
        return f"it does not answer within {ANSWER_S_MAX:g} s"


async def _tls_problem(target: str, service: ServiceName, tls_directory: Path) -> str | None:
    try:
        files = CertificateFiles.read(tls_directory)
    except CertificateUnreadable as error:
        raise ConfigurationProblem(str(error)) from error
    credentials = grpc.ssl_channel_credentials(
        files.authority_pem, files.key_pem, files.certificate_pem
    )
    options = (
        ("grpc.ssl_target_name_override", server_name(service)),
        ("grpc.enable_http_proxy", 0),
    )
    place = target.removeprefix("tls:")
    async with grpc.aio.secure_channel(place, credentials, options) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=ANSWER_S_MAX
            )
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
    is_serving = answer.status == health_pb2.HealthCheckResponse.SERVING
    return None if is_serving else "it does not serve"
