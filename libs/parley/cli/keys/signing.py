"""The steps of rotating signing keys; each can be repeated after an interruption."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from parley.cli.home.layout import Home
from parley.identity import ServiceName, SigningKey, SigningKeyUnreadable, TrustFile


def signing_key_ids(home: Home) -> dict[str, str]:
    """Return the id of the key that each service signs with."""
    files = {service.value: home.signing_key_file(service) for service in ServiceName}
    return {name: SigningKey.load(path).kid for name, path in files.items() if path.exists()}


def trust_new_keys(home: Home, old: Mapping[str, str]) -> None:
    """Make a new key for each service that signs with an old one, and trust it."""
    for service, kid in old.items():
        if SigningKey.load(home.signing_key_file(service)).kid == kid:
            key = _next_key(_next_file(home, service))
            TrustFile(home.trust_file).add_key(ServiceName(service), key)


def use_new_keys(home: Home, old: Mapping[str, str]) -> None:
    """Let services sign with their new keys."""
    for service, kid in old.items():
        path = home.signing_key_file(service)
        if SigningKey.load(path).kid == kid:
            os.replace(_next_file(home, service), path)


def retire_old_keys(
    home: Home, old: Mapping[str, str], ends: Mapping[str, datetime], now: datetime
) -> None:
    """Let the tokens of old keys be refused after a time.

    Args:
        home: The home.
        old: The keys by service.
        ends: Until when the key of a service is trusted.
        now: The time.
    """
    file = TrustFile(home.trust_file)
    open_ended = {key.kid for key in file.read() if key.retired_at is None}
    for service, kid in old.items():
        if kid in open_ended:
            file.retire_key(kid, now=now, overlap_s=(ends[service] - now).total_seconds())


def _next_key(path: Path) -> SigningKey:
    """Return the key that was made before an interruption, or make one."""
    try:
        return SigningKey.load(path)
    except SigningKeyUnreadable:
        key = SigningKey.generate()
        key.save(path)
        return key


def _next_file(home: Home, service: str) -> Path:
    return home.signing_key_file(service).with_suffix(".key.next")
