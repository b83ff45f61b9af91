"""`endpoints.json`: the addresses of the stack, for other programs of this user."""

import json

from parley.cli.home.private_files import write_private
from parley.cli.stack.spec import CHATD, GATEWAY, MCPGATEWAY, TOOLRUNNER, Stack


def write_endpoints(stack: Stack, database_url: str) -> None:
    """Write the file, readable by its owner only."""
    document = {
        "http": stack.ports.http[0].url,
        "public_url": stack.public_url,
        "api_key_file": str(stack.home.api_key_file),
        "grpc": {
            service: list(stack.addresses(service))
            for service in (GATEWAY, CHATD, TOOLRUNNER, MCPGATEWAY)
        },
        "metrics": {
            service: [stack.metrics_url(service, number) for number in range(len(addresses))]
            for service, addresses in stack.ports.metrics.items()
        },
        "database": database_url,
    }
    write_private(stack.home.endpoints_file, json.dumps(document, indent=2) + "\n")
