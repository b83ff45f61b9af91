"""`parley health`: one health check of one service, for container engines and load balancers."""

import asyncio
from pathlib import Path

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.options import HomeCommand
from parley.cli.stack.plan import Readiness, Sign
from parley.cli.supervision.readiness import NetworkProbe
from parley.identity import CertificateFiles, CertificateUnreadable, ServiceName, server_name

ANSWER_S_MAX = 3.0


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

    A target is an address of gRPC (unix:, tcp: or tls:) or an http:// URL.
    """
    for target in targets:
        if not target.startswith(("http://", "unix:", "tcp:", "tls:")):
            raise ConfigurationProblem(
                f"{target} is no address; give unix:/PATH, tcp:HOST:PORT, tls:HOST:PORT or an "
                "http:// URL. For processes of this machine use `parley status`"
            )
        if is_accepting_enough:
            is_well = _shows(Sign.ACCEPTS, target)
        elif target.startswith("http://"):
            is_well = _shows(Sign.HTTP_OK, target)
        elif not target.startswith("tls:"):
            is_well = _shows(Sign.GRPC_HEALTH, target)
        elif service is None or tls_directory is None:
            raise ConfigurationProblem(f"{target} needs --service NAME and --tls DIR")
        else:
            is_well = asyncio.run(_serves(target, ServiceName(service), tls_directory))
        if not is_well:
            raise CliError(f"{target} is not well")
        click.echo(f"{target} is well")


def _shows(sign: Sign, target: str) -> bool:
    return asyncio.run(NetworkProbe().is_ready((Readiness(sign, target),)))


async def _serves(target: str, service: ServiceName, tls_directory: Path) -> bool:
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
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
