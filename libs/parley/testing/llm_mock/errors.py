"""The errors of the mock.

MockError
├── BehaviourUnknown    a model name has a word that the grammar does not have
├── RecordingUnreadable a file to replay is not a recording
└── Refused             a request that the provider would refuse
"""


class MockError(Exception):
    """The mock cannot do this; the text says what to change."""


class BehaviourUnknown(MockError):
    """A behaviour has an unknown word."""


class RecordingUnreadable(MockError):
    """A file cannot be replayed."""


class Refused(MockError):
    """A request that is refused, with the message of the provider.

    Attributes:
        status: Status to answer with.
        message: What is wrong.
        param: The invalid field, if the provider names it; else empty.
        code: The provider's error code, if it has one.
        type: The provider's error type; empty for the one that belongs to the status.
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
