"""The environment of each process: some variables of the caller, and its settings."""

from collections.abc import Mapping

from parley.cli.stack.model_providers import provider_settings
from parley.cli.stack.node_users import users_of_node
from parley.cli.stack.spec import CHATD, GATEWAY, MCP_DEMO, MCPGATEWAY, TOOLRUNNER, Stack, prefix_of

#: Variables of the caller that every process gets.
INHERITED = ("PATH", "HOME", "LANG")
#: Variable of the caller -> the setting that it sets for every service.
SHARED: Mapping[str, str] = {
    "PARLEY_ENVIRONMENT": "ENVIRONMENT",
    "PARLEY_LOG_FORMAT": "LOG_FORMAT",
    "PARLEY_LOG_LEVEL": "LOG_LEVEL",
    "PARLEY_OTLP_ENDPOINT": "OTLP_ENDPOINT",
}
#: Variable of the caller that is equivalent to `--public-url`.
PUBLIC_URL = "GATEWAY_PUBLIC_URL"


def environment_of(stack: Stack, service: str, number: int) -> dict[str, str]:
    """Return the complete environment of one process."""
    caller = stack.caller.environment
    shared = {} if service == MCP_DEMO else _shared_settings(caller, service)
    # Only chatd calls model providers.
    models = provider_settings(caller, prefix_of(CHATD)) if service == CHATD else {}
    nodes = stack.sizes.toolrunner
    users = users_of_node(caller, number, nodes) if service == TOOLRUNNER else {}
    return {
        **{name: caller[name] for name in INHERITED if name in caller},
        **shared,
        **models,
        **_settings_of_caller(caller, service),
        **users,
        **_metrics_settings(stack, service, number),
        **settings_of(stack, service, number),
    }


#: Setting that `parley up` sets itself -> the option to use instead.
_INSTEAD: Mapping[str, str] = {"GATEWAY_HTTP_LISTEN": ", and use --http"}


def settings_of(stack: Stack, service: str, number: int) -> dict[str, str]:
    """Return the settings that this stack sets for one process."""
    chosen = _own_settings(stack, service, number) | {"PARENT_PID": str(stack.caller.pid)}
    if service != MCP_DEMO:
        chosen |= {
            "LISTEN": stack.address(service, number),
            "TRUST_FILE": str(stack.home.trust_file),
            "SIGNING_KEY_FILE": str(stack.home.signing_key_file(service)),
        }
    return {f"{prefix_of(service)}_{name}": value for name, value in sorted(chosen.items())}


def problems_of(stack: Stack) -> tuple[str, ...]:
    """Return the settings of the caller that conflict with those this stack sets itself."""
    problems = []
    for service in (TOOLRUNNER, MCPGATEWAY, CHATD, GATEWAY):
        chosen = settings_of(stack, service, 0)
        spellings = set(chosen) | {name.removesuffix("_FILE") for name in chosen}
        spellings.discard(PUBLIC_URL)  # Handled by the request.
        problems += [
            f"{name} is set by `parley up` itself: unset it{_INSTEAD.get(name, '')}"
            for name in sorted(spellings & set(stack.caller.environment))
        ]
    return tuple(problems)


def _metrics_settings(stack: Stack, service: str, number: int) -> dict[str, str]:
    addresses = stack.ports.metrics.get(service)
    name = f"{prefix_of(service)}_METRICS_LISTEN"
    return {} if addresses is None else {name: str(addresses[number])}


def _shared_settings(caller: Mapping[str, str], service: str) -> dict[str, str]:
    prefix = prefix_of(service)
    return {f"{prefix}_{name}": caller[given] for given, name in SHARED.items() if given in caller}


def _settings_of_caller(caller: Mapping[str, str], service: str) -> dict[str, str]:
    prefix = prefix_of(service) + "_"
    return {name: value for name, value in caller.items() if name.startswith(prefix)}


def _own_settings(stack: Stack, service: str, number: int) -> dict[str, str]:
    home, ports = stack.home, stack.ports
    upstream = {
        name: ",".join(stack.addresses(name)) for name in (TOOLRUNNER, MCPGATEWAY, CHATD, GATEWAY)
    }
    match service:
        case "mcp-demo":
            return {"LISTEN": str(ports.mcp_demo)}
        case "toolrunner":
            return {
                "DATA_DIRECTORY": str(home.toolrunner(number)),
                "CHATD": upstream[CHATD],
            }
        case "mcpgateway":
            return {
                "DATABASE_URL_FILE": str(home.database_url_file(service)),
                "MASTER_KEY_FILE": str(home.master_key_file),
                "GATEWAY": upstream[GATEWAY],
                "PUBLIC_URL": stack.public_url,
                "DEMO_SERVER_URL": f"{ports.mcp_demo.url}/mcp",
                "INSTANCE_FILE": str(home.gateway_instance_file(number)),
            }
        case "chatd":
            return {
                "DATABASE_URL_FILE": str(home.database_url_file(service)),
                "MASTER_KEY_FILE": str(home.master_key_file),
                "TOOLRUNNER": upstream[TOOLRUNNER],
                "MCPGATEWAY": upstream[MCPGATEWAY],
                "GATEWAY": upstream[GATEWAY],
                "INSTANCE_FILE": str(stack.instance_file(service, number)),
                **_push_contact(stack),
            }
        case "gateway":
            return {
                "DATABASE_URL_FILE": str(home.database_url_file(service)),
                "HTTP_LISTEN": str(ports.http[number]),
                "PUBLIC_URL": stack.public_url,
                "CHATD": upstream[CHATD],
                "MCPGATEWAY": upstream[MCPGATEWAY],
                "OWNER_API_KEY_FILE": str(home.api_key_file),
                "LOGIN_TOKEN_FILE": str(home.login_token_file),
                "AUDIT_KEY_FILE": str(home.audit_key_file),
                "AUDIT_HEADS_FILE": str(home.audit_heads_file),
                "MASTER_KEY_FILE": str(home.master_key_file),
            }
        case _:
            raise ValueError(f"no service is called {service}")


def _push_contact(stack: Stack) -> dict[str, str]:
    """Return who push services may contact: a public URL, unless the caller names somebody."""
    is_given = f"{prefix_of(CHATD)}_PUSH_CONTACT" in stack.caller.environment
    is_public = stack.public_url.startswith("https://")
    return {"PUSH_CONTACT": stack.public_url} if is_public and not is_given else {}
