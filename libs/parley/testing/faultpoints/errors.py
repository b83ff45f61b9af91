"""What an armed point raises."""


class FaultInjected(Exception):
    """A test asked for this failure.

    Attributes:
        point: Where.
    """

    def __init__(self, point: str) -> None:
        super().__init__(f"the fault at {point} was asked for; disarm it to go on without")
        self.point = point
