import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from toolrunner.workspaces.sources.git_command import (
    GIT_ENVIRONMENT,
    KNOWN_HOSTS,
    PRIVATE,
    SSH,
    redacted,
    redacted_names,
    ssh_to,
)
from toolrunner.workspaces.sources.mirrors import MirrorBounds, MirrorUse
from toolrunner.workspaces.sources.remotes import (
    Remote,
    RemoteRefused,
    Remotes,
    is_led,
    pinned,
    remote_of,
)


@dataclass
class KnownHosts:
    """Knows a few hosts, and counts who asks."""

    hosts: dict[str, tuple[str, ...]]
    asked: list[str] = field(default_factory=list)

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append(host)
        if host not in self.hosts:
            raise OSError("no such host")
        return self.hosts[host]


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://example.org/a/b.git", Remote("https", "example.org", 443)),
        ("https://example.org:8443/a", Remote("https", "example.org", 8443)),
        ("http://[2606:4700::1111]/a", Remote("http", "2606:4700::1111", 80)),
        ("ssh://git@example.org/a", Remote("ssh", "example.org", 22)),
        ("ssh://example.org:2222/a", Remote("ssh", "example.org", 2222)),
        ("git@example.org:a/b.git", Remote("ssh", "example.org", 22)),
        ("example.org:a", Remote("ssh", "example.org", 22)),
        ("file:///srv/a", Remote("file", path="/srv/a")),
        ("/srv/a", Remote("file", path="/srv/a")),
    ],
)
def test_addresses_are_read(url: str, remote: Remote) -> None:
    assert remote_of(url) == remote


REFUSED = (
    *("-oProxyCommand=x", "--upload-pack=x", "ext::sh -c x", "ext::sh", "fd::7", "a::b", "::x"),
    *("https://user:secret@example.org/a", "https://token@example.org/a", "http://u@example.org/"),
    *("https://example.org/a?token=x", "https://example.org/a#x", "ssh://u:p@example.org/a"),
    *(
        "ssh://-oProxyCommand=x/a",
        "ssh://-u@example.org/a",
        "-u@example.org:a",
        "a b",
        "https://a b",
    ),
    *(
        "https:///a",
        "https://example.org:99999/a",
        "https://exa mple.org/",
        "https://-x/",
        "relative",
    ),
    *("file://host/a", "https://example.org\n/a", "https://example.org\x00/a", "https://[::1", ""),
    *("u@-oProxyCommand=x:a", "https://exa$(x)mple.org/a", "ssh://$(x)@example.org/a"),
)


@pytest.mark.parametrize("url", REFUSED)
def test_odd_addresses_and_credentials_are_refused(url: str) -> None:
    with pytest.raises(RemoteRefused):
        remote_of(url)


def test_a_transport_that_is_not_allowed_is_told_with_those_that_are() -> None:
    remotes = Remotes(("https", "ssh"), (), KnownHosts({}))
    with pytest.raises(RemoteRefused, match="only by https, ssh") as refused:
        remotes.read("file:///etc")
    assert "TOOLRUNNER_GIT_PROTOCOLS" in str(refused.value)


INSIDE = (
    *(
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
    ),
    *("168.63.129.16", "100.100.100.200", "224.0.0.1", "255.255.255.255", "192.0.0.192"),
    *("::1", "::", "fe80::1", "fd00:ec2::254", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
    *("2002:7f00:1::", "ff02::1", "2001:0:1::1", "fec0::1", "not an address"),
)


@pytest.mark.parametrize("address", INSIDE)
async def test_what_is_not_public_is_refused_unless_it_is_named(address: str) -> None:
    resolver = KnownHosts({"inside": ("93.184.216.34", address)})
    remote = Remote("https", "inside", 443)
    with pytest.raises(RemoteRefused, match="TOOLRUNNER_GIT_PRIVATE_HOSTS") as refused:
        await Remotes(("https",), (), resolver).judged(remote)
    # Who asks learns that it is inside, and not where.
    assert address not in str(refused.value)
    allowed = await Remotes(("https",), ("inside",), resolver).judged(remote)
    assert allowed == ("93.184.216.34", address)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "ssh: connect to host 10.1.2.3 port 22: Connection refused",
            f"ssh: connect to host {PRIVATE} port 22: Connection refused",
        ),
        ("redirect: http://127.0.0.1:8080/a", f"redirect: http://{PRIVATE}:8080/a"),
        ("to http://[fd00::1]:80/ and fe80::1.", f"to http://[{PRIVATE}]:80/ and {PRIVATE}."),
        ("metadata (169.254.169.254)", f"metadata ({PRIVATE})"),
        ("public 93.184.216.34 and 2606:4700:4700::1111", None),
        ("at 12:30:45, version 1.2.3, 10.1.2.3.4, a ratio of 1:2", None),
        ("asked for 192.168.7.7", None),
        (
            "unable to access 'http://127.0.0.1:4000/~t0ken/https/example.org:443/a.git/'",
            "unable to access 'https://example.org/a.git/'",
        ),
        ("in /data/mirrors/abc: broken", "in .: broken"),
    ],
)
def test_what_git_says_has_no_private_address_and_no_path_of_the_node(
    line: str, shown: str | None
) -> None:
    variables = {
        "GIT_CONFIG_KEY_0": "url.http://127.0.0.1:4000/~t0ken/https/example.org:443/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://example.org/",
    }
    names = {**redacted_names(variables), "/data/mirrors/abc": "."}
    assert redacted(line, names, "192.168.7.7") == (line if shown is None else shown)


async def test_a_host_without_an_address_is_told() -> None:
    with pytest.raises(RemoteRefused, match="has no address"):
        await Remotes(("https",), (), KnownHosts({})).judged(Remote("https", "nowhere", 443))


async def test_a_repository_of_this_machine_needs_no_address() -> None:
    resolver = KnownHosts({})
    assert await Remotes(("file",), (), resolver).judged(Remote("file", path="/srv")) == ()
    assert resolver.asked == []


def test_a_repository_of_this_machine_is_where_it_seems_and_not_in_the_nodes_data(
    tmp_path: Path,
) -> None:
    data, offered = tmp_path / "data", tmp_path / "offered"
    for each in (data / "workspaces" / "w" / "files", offered):
        each.mkdir(parents=True)
    (offered / "link").symlink_to(data / "workspaces")
    (tmp_path / "alias").symlink_to(data)
    remotes = Remotes(("file",), (), KnownHosts({}), str(tmp_path / "alias"))
    assert remotes.read(f"file://{offered}") == Remote("file", path=str(offered))
    for path in (
        data,
        data / "workspaces" / "w" / "files",
        tmp_path / "alias" / "workspaces",
        offered / "link" / "w" / "files",
        offered / ".." / "data",
        f"{offered}/%2e%2e/data",
        f"{tmp_path}/%64ata",
    ):
        for url in (str(path), f"file://{path}"):
            with pytest.raises(RemoteRefused, match=r"give the path itself|fork the workspace"):
                remotes.read(url)


def test_git_connects_to_judged_addresses_and_follows_nobody() -> None:
    found = pinned(Remote("https", "example.org", 443), ("93.184.216.34", "2606:4700::1"))
    assert found == (
        *("-c", "http.followRedirects=false"),
        *("-c", "http.curloptResolve=example.org:443:93.184.216.34,[2606:4700::1]"),
    )


def test_who_is_led_another_way_is_judged_there() -> None:
    led = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "url.http://127.0.0.1:1/x/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://example.org/",
    }
    assert is_led("https://example.org/a", led)
    assert not is_led("https://example.net/a", led)
    assert not is_led("https://example.org/a", {})


def test_ssh_uses_nothing_of_the_node() -> None:
    effective = subprocess.run(
        [SSH[0], "-G", *SSH[1:], "example.org"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split(" ", 1) for line in effective.splitlines())
    names = ("identityfile", "identityagent", "certificatefile", "globalknownhostsfile")
    assert {name: found[name] for name in names} == dict.fromkeys(names, "none")
    assert (found["identitiesonly"], found["batchmode"]) == ("yes", "yes")
    assert (found["userknownhostsfile"], found["passwordauthentication"]) == (KNOWN_HOSTS, "no")
    assert str(Path.home()) not in effective
    assert "SSH_AUTH_SOCK" not in GIT_ENVIRONMENT


def test_ssh_goes_to_a_judged_address_under_the_name_of_the_host() -> None:
    command = ssh_to("example.org", ("93.184.216.34",))["GIT_SSH_COMMAND"]
    assert command.endswith("-o HostName=93.184.216.34 -o HostKeyAlias=example.org")


DAY_S = 86_400


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        (MirrorBounds(9, 1000, 30 * DAY_S), ()),
        (MirrorBounds(2, 1000, 30 * DAY_S), ("old",)),
        (MirrorBounds(9, 500, 30 * DAY_S), ("old",)),
        (MirrorBounds(9, 100, 30 * DAY_S), ("old", "middle", "new")),
        (MirrorBounds(9, 1000, 2 * DAY_S), ("old", "middle")),
    ],
)
def test_mirrors_not_used_for_longest_go_until_the_rest_keeps_the_bounds(
    bounds: MirrorBounds, gone: tuple[str, ...]
) -> None:
    kept = [
        MirrorUse(Path("new"), 200, 10 * DAY_S),
        MirrorUse(Path("old"), 200, 1 * DAY_S),
        MirrorUse(Path("middle"), 200, 5 * DAY_S),
    ]
    assert bounds.surplus(kept, 10.0 * DAY_S) == tuple(map(Path, gone))
