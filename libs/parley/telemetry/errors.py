"""Reasons why telemetry cannot start."""


class TelemetryError(Exception):
    """Telemetry cannot be configured as requested.

    TelemetryError
    ├── MetricsAddressInvalid
    ├── MetricsAddressTaken
    └── OtlpEndpointInvalid
    """


class MetricsAddressInvalid(TelemetryError):
    """The address to serve metrics on is not host:port."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"cannot serve metrics on {address!r}: give host:port, such as 127.0.0.1:9464"
        )
        self.address = address


class MetricsAddressTaken(TelemetryError):
    """The address to serve metrics on cannot be bound."""

    def __init__(self, address: str, cause: str) -> None:
        super().__init__(
            f"cannot serve metrics on {address}: {cause}; "
            "stop the process that listens there, or give another port"
        )
        self.address = address
        self.cause = cause


class OtlpEndpointInvalid(TelemetryError):
    """The OTLP endpoint is not an http or https URL."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            f"cannot export to {endpoint!r}: give the collector's gRPC address as "
            "http://host:port or https://host:port"
        )
        self.endpoint = endpoint
