"""How many examples tests of properties try."""

from hypothesis import settings

#: With --brief, in a plain run, and with --full-size to find what is rare.
BRIEF, PLAIN, FULL_SIZE = 10, 100, 400


def examples(plain: int) -> int:
    """Return how many examples to try, for a test that tries `plain` in a plain run."""
    current = settings.get_profile(settings.get_current_profile_name())
    return max(plain * current.max_examples // PLAIN, 1)
