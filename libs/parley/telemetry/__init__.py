"""Telemetry of a process: traces, metrics, and logs from which secrets are redacted."""

from parley.telemetry.errors import (
    MetricsAddressInvalid,
    MetricsAddressTaken,
    OtlpEndpointInvalid,
    TelemetryError,
)
from parley.telemetry.genai import ModelCall, ModelInstruments, TokenUsage, model_call
from parley.telemetry.logs import LogFormat, LogLevel, audit
from parley.telemetry.memory import InMemoryTelemetry
from parley.telemetry.outages import OutageLog
from parley.telemetry.redaction import Redactor
from parley.telemetry.sql import Durations, Histograms, Series, Statements, summary_of
from parley.telemetry.telemetry import Telemetry, start

__all__ = [
    "Durations",
    "Histograms",
    "InMemoryTelemetry",
    "LogFormat",
    "LogLevel",
    "MetricsAddressInvalid",
    "MetricsAddressTaken",
    "ModelCall",
    "ModelInstruments",
    "OtlpEndpointInvalid",
    "OutageLog",
    "Redactor",
    "Series",
    "Statements",
    "Telemetry",
    "TelemetryError",
    "TokenUsage",
    "audit",
    "model_call",
    "start",
    "summary_of",
]
