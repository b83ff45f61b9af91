"""What can go wrong before or around a call; what a call itself answers is a `Problem`.

RpcError
├── AddressInvalid        text that names no place to listen or connect
├── AddressUnusable       a place this process cannot serve on or connect to
├── MethodsMissing        a registration that does not serve its service
├── NoAddress             no replica is known
├── NoCall                asked for the call being served where none is
└── Refusal               (problem.py) a call answered with a problem
"""

from parley.settings import ConfigurationError


class RpcError(Exception):
    """Base of this room's errors."""


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
    """An address that is well formed and cannot be used here.

    Attributes:
        address: The address as text.
        problem: What is wrong, and what to do.
    """

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"{address}: {problem}")
        self.address = address
        self.problem = problem


class MethodsMissing(RpcError):
    """A servicer registered for a service whose methods it does not all serve.

    Attributes:
        service: Full name of the service.
        methods: Names of its methods without a handler.
    """

    def __init__(self, service: str, methods: tuple[str, ...]) -> None:
        super().__init__(f"{service} has no handler for {', '.join(methods)}; register them")
        self.service = service
        self.methods = methods


class NoAddress(RpcError):
    """A channel was asked for while no replica is known."""

    def __init__(self) -> None:
        super().__init__("no replica is known; wait for one or configure an address")


class NoCall(RpcError):
    """The call being served was asked for outside of any."""

    def __init__(self) -> None:
        super().__init__("no call is being served here; ask inside a servicer's method")
