"""What the room refuses.

MockError
├── BehaviourUnknown    a model name asks for what the grammar does not know
├── RecordingUnreadable a file to replay is not a recording
└── Refused             a request that the provider would refuse
"""


class MockError(Exception):
    """Something that the mock cannot do; the text says what to change."""


class BehaviourUnknown(MockError):
    """A word of a behaviour means nothing."""


class RecordingUnreadable(MockError):
    """A file cannot be replayed."""


class Refused(MockError):
    """A request that does not deserve an answer, told in the words of the provider.

    Attributes:
        status: Status to answer with.
        message: What is wrong.
        param: The field that is wrong, where the provider names it; else empty.
        code: The provider's short name for it, if it has one.
        type: The provider's class of errors; empty for the one that goes with the status.
    """

    def __init__(
        self, status: int, message: str, *, param: str = "", code: str = "", type: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.type = type
