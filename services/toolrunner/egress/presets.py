"""Lists of hosts under a name, so that a policy can say `pypi` and mean all that pip needs."""

from collections.abc import Mapping
from typing import Final

from toolrunner.egress.errors import PolicyInvalid
from toolrunner.egress.hosts import HostPattern

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "bitbucket": ("bitbucket.org:443", "api.bitbucket.org:443"),
    "crates": ("crates.io:443", "index.crates.io:443", "static.crates.io:443"),
    "debian": (
        *("deb.debian.org", "security.debian.org", "ftp.debian.org", "snapshot.debian.org:443"),
        "cdn-fastly.deb.debian.org",
    ),
    "github": (
        *("github.com:443", "api.github.com:443", "codeload.github.com:443"),
        *("uploads.github.com:443", "*.githubusercontent.com:443"),
    ),
    "gitlab": ("gitlab.com:443", "registry.gitlab.com:443"),
    "go": ("proxy.golang.org:443", "sum.golang.org:443", "go.dev:443"),
    "maven": ("repo.maven.apache.org:443", "repo1.maven.org:443"),
    "npm": ("registry.npmjs.org:443", "registry.yarnpkg.com:443"),
    "pypi": ("pypi.org:443", "files.pythonhosted.org:443"),
    "rubygems": ("rubygems.org:443", "index.rubygems.org:443"),
    "ubuntu": ("archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
}


def hosts_of(preset: str) -> tuple[HostPattern, ...]:
    """Return the hosts of a preset.

    Raises:
        PolicyInvalid: There is no such preset.
    """
    if preset not in PRESETS:
        raise PolicyInvalid(preset, f"is no preset; there are {', '.join(sorted(PRESETS))}")
    return tuple(map(HostPattern.parse, PRESETS[preset]))
