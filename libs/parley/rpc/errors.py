"""Errors before or around a call; the error that a call answers is a `Problem`.

RpcError
├── AddressInvalid        text that is not an address
├── AddressUnusable       an address this process cannot listen on or connect to
├── MethodsMissing        a servicer that lacks methods of its service
├── NoAddress             no replica is known
├── NoCall                the current call was requested outside of any call
└── Refusal               (problem.py) a call answered with a problem
"""

from parley.settings import ConfigurationError


class RpcError(Exception):
    """Base of the errors of this package."""


class AddressInvalid(RpcError, ValueError):
    """Text that is not an address.

    Attributes:
        text: The text.
        problem: What is wrong with it.
    """

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r}: {problem}; write unix:/PATH, tcp:HOST:PORT or tls:HOST:PORT")
        self.text = text
        self.problem = problem


class AddressUnusable(RpcError, ConfigurationError):
    """A well-formed address that cannot be used here.

    Attributes:
        address: The address as text.
        problem: What is wrong, and what to do.
    """

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"{address}: {problem}")
        self.address = address
        self.problem = problem


class MethodsMissing(RpcError):
    """A servicer does not implement all methods of the service it is registered for.

    Attributes:
        service: Full name of the service.
        methods: Names of its methods without a handler.
    """

    def __init__(self, service: str, methods: tuple[str, ...]) -> None:
        super().__init__(f"{service} has no handler for {', '.join(methods)}; register them")
        self.service = service
        self.methods = methods


class NoAddress(RpcError):
    """A channel was requested while no replica is known."""

    def __init__(self) -> None:
        super().__init__("no replica is known; wait for one or configure an address")


class NoCall(RpcError):
    """The current call was requested outside of any call."""

    def __init__(self) -> None:
        super().__init__("no call is being served here; ask inside a servicer's method")
