"""The error that an armed fault point raises."""


class FaultInjected(Exception):
    """A failure injected by a test.

    Attributes:
        point: The name of the fault point.
    """

    def __init__(self, point: str) -> None:
        super().__init__(f"the fault at {point} was asked for; disarm it to go on without")
        self.point = point
