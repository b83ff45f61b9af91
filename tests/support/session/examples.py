"""How many examples tests of properties try."""

from hypothesis import settings

#: In a plain run: enough to find what a change breaks. With --full-size: to find what is rare.
PLAIN, FULL_SIZE = 25, 100


def examples(full_size: int) -> int:
    """Return how many examples to try, for a test that tries `full_size` at full size."""
    current = settings.get_profile(settings.get_current_profile_name())
    return max(1, full_size * current.max_examples // FULL_SIZE)
