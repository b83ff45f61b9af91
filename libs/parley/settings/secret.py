"""Text that is not displayed by accident."""


class Secret:
    """Text that is hidden from repr, str and format; only `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret is not pickled, because that would write it down")
