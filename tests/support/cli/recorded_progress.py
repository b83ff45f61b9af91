"""Progress lines of commands, kept for tests."""


class RecordedProgress:
    """Stores the lines, for tests."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Store the line."""
        self.lines.append(line)

    def say_secret(self, line: str) -> None:
        """Store the line, like any other."""
        self.say(line)
