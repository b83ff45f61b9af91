"""The longest pause before a process that ends again and again is started again."""

import math
from collections.abc import Mapping

from parley.cli.errors import ConfigurationProblem

VARIABLE = "PARLEY_RESTART_PAUSE_MAX_S"
DEFAULT_S = 10.0
SHORTEST_S = 0.2
LONGEST_S = 600.0


def restart_pause_max_s(environment: Mapping[str, str]) -> float:
    """Return the pause in seconds that the environment sets, or the default.

    Raises:
        ConfigurationProblem: it is not a number of seconds in the allowed range.
    """
    given = environment.get(VARIABLE, "").strip()
    if not given:
        return DEFAULT_S
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    # A comparison with NaN is false.
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ConfigurationProblem(
            f"{VARIABLE} is {given}: write seconds from {SHORTEST_S:g} to {LONGEST_S:g}"
        )
    return seconds
