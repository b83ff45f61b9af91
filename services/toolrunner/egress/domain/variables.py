"""What programs in a workspace are told, so that they find the way out by themselves."""

from collections.abc import Iterable, Mapping
from typing import Final

from toolrunner.egress.domain.grants import Delivery, Grant
from toolrunner.egress.domain.targets import TLS, TOKEN_MARK

#: Where the proxy is inside a network namespace, in which nobody else listens.
INSIDE_PORT: Final = 3128
INSIDE_HOST: Final = "127.0.0.1"
USER: Final = "workspace"
#: A server of the workspace's own is reached without the proxy.
DIRECT: Final = "localhost,127.0.0.1,::1"
#: Asked by git for a password: it has none, since the proxy adds them, and says how to get there.
CREDENTIAL_HELPER: Final = (
    '!f() { test "$1" = get || exit 0; while IFS== read -r k v; do test "$k" = host && h=$v; done; '
    'echo "parley: $h wants a password. No secret for it is granted to this workspace, or it is '
    "granted for *.DOMAIN; then ask for \\$PARLEY_EGRESS/https/$h/... instead. The owner can store "
    "one by 'parley secret put NAME --host $h --delivery git' and grant it by 'parley secret grant "
    "WORKSPACE NAME'.\" >&2; }; f"
)


def variables_of(
    grants: Iterable[Grant],
    *,
    port: int = INSIDE_PORT,
    token: str = "",
    has_proxy: bool = True,
) -> Mapping[str, str]:
    """Return the variables of a process that goes out through the proxy; none holds a secret.

    Args:
        grants: The workspace's secrets; git is led past TLS of its own for the hosts of these.
        port: Where the proxy is.
        token: What it wants to be shown there.
        has_proxy: Whether everything has to go through it; otherwise only what needs a secret.
    """
    proxy = f"http://{USER}:{token}@{INSIDE_HOST}:{port}" if token else _address(port)
    base = _address(port) + (f"{TOKEN_MARK}{token}" if token else "")
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    direct = {"NO_PROXY": DIRECT, "no_proxy": DIRECT}
    return {
        **({**proxies, **direct} if has_proxy else {}),
        "PARLEY_EGRESS": base,
        **git_variables(grants, base, credential_helper=CREDENTIAL_HELPER),
    }


def git_variables(
    grants: Iterable[Grant], base: str, *, credential_helper: str = ""
) -> Mapping[str, str]:
    """Return git's configuration as variables, which no file of the workspace can be.

    A wildcard cannot be written as a rule of git; what it covers is asked for through `base`.
    """
    hosts = sorted(
        {
            (pattern.host, pattern.port or 443)
            for grant in grants
            if grant.delivery is not Delivery.ENVIRONMENT
            for pattern in grant.hosts
            if not pattern.is_wildcard
        }
    )
    rules = [
        (f"url.{base}{TLS}{host}:{port}/.insteadOf", f"https://{spelling}/")
        for host, port in hosts
        for spelling in ((host, f"{host}:443") if port == 443 else (f"{host}:{port}",))
    ]
    rules += [(f"url.{base}{TLS}{host}:{port}/.insteadOf", f"git@{host}:") for host, port in hosts]
    if credential_helper:
        rules.append(("credential.helper", credential_helper))
    variables = {"GIT_CONFIG_COUNT": str(len(rules))} if rules else {}
    for index, (key, value) in enumerate(rules):
        variables[f"GIT_CONFIG_KEY_{index}"] = key
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables


def _address(port: int) -> str:
    return f"http://{INSIDE_HOST}:{port}"
