"""What a finished rotation did, in two lines."""

from datetime import timedelta

from parley.cli.keys.plan import Rotation
from parley.cli.keys.rotation import Overlap
from parley.identity import ServiceName


def summary_of(
    rotation: Rotation, overlap: Overlap, *, master_key_id: str, issue: str
) -> tuple[str, str]:
    """Return which keys were replaced, and what holds of the old ones.

    Args:
        rotation: The rotation in its last stage.
        overlap: How long old keys are accepted.
        master_key_id: The master key that encrypts now.
        issue: The command that issues service tokens.
    """
    services = ", ".join(sorted(rotation.signing_key_ids))
    replaced = [
        *([f"the master key (now {master_key_id})"] if rotation.master_key_ids else []),
        *([f"the signing keys of {services}"] if services else []),
        *(["the certificate authority"] if rotation.authority else []),
    ]
    first = f"Replaced {', '.join(replaced)}." if replaced else "There was no key to replace."
    tokens_s = overlap.service_tokens_s
    if ServiceName.GATEWAY in rotation.signing_key_ids and tokens_s > overlap.every_key_s:
        until = rotation.changed_at + timedelta(seconds=tokens_s)
        return first, (
            f"The old keys are refused, except for service tokens until {until:%Y-%m-%d %H:%M} "
            f"UTC: issue new ones with `{issue}`."
        )
    return first, "The old keys are refused."
