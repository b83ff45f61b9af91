"""Environment variables that configure programs in a workspace to use the proxy."""

from collections.abc import Iterable, Mapping
from typing import Final

from toolrunner.egress.domain.grants import Delivery, Grant
from toolrunner.egress.domain.targets import TLS, TOKEN_MARK

#: The proxy's port inside of a network namespace, in which no other process listens on it.
INSIDE_PORT: Final = 3128
INSIDE_HOST: Final = "127.0.0.1"
USER: Final = "workspace"
#: A server of the workspace itself is reached without the proxy.
DIRECT: Final = "localhost,127.0.0.1,::1"
#: Called by git for a password: it has none, since the proxy adds them, and prints how to get one.
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
    """Return the variables of a process that uses the proxy; none contains a secret.

    Args:
        grants: The workspace's secrets; git's URLs of their hosts are rewritten to the proxy.
        port: The port of the proxy.
        token: The token that the proxy requires there.
        has_proxy: Whether all requests have to use it; otherwise only those that need a secret.
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
    """Return git's configuration as variables, which override the files of the workspace.

    A wildcard cannot be a URL rule of git; its hosts are requested through `base`.
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
