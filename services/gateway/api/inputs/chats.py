"""Types of values in bodies."""

from typing import Annotated

import msgspec

# A larger number in JSON loses precision in some clients.
INTEGER_MAX = 2**53 - 1

UUID_PATTERN = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
Uuid = Annotated[str, msgspec.Meta(pattern=rf"^{UUID_PATTERN}\Z", description="a UUID")]
OptionalUuid = Annotated[
    str, msgspec.Meta(pattern=rf"^(?:{UUID_PATTERN})?\Z", description='a UUID, or "" for none')
]
