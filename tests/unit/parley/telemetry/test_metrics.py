"""Metrics as Prometheus reads them."""

from parley.telemetry import InMemoryTelemetry


def samples(memory: InMemoryTelemetry) -> list[str]:
    lines = memory.telemetry.metrics_text().splitlines()
    return [line for line in lines if not line.startswith(("#", "target_info"))]


def test_a_counter_is_in_the_text_with_its_labels() -> None:
    memory = InMemoryTelemetry("chatd")
    turns = memory.telemetry.meter.create_counter("parley.turns", description="Turns run.")
    turns.add(2, {"outcome": "finished"})
    turns.add(1, {"outcome": "failed"})

    assert samples(memory) == [
        'parley_turns_total{outcome="finished"} 2.0',
        'parley_turns_total{outcome="failed"} 1.0',
    ]
    assert '{service_name="chatd"}' in memory.telemetry.metrics_text()


def test_two_processes_in_one_interpreter_do_not_share_metrics() -> None:
    one, other = InMemoryTelemetry(), InMemoryTelemetry()
    one.telemetry.meter.create_counter("parley.turns").add(1)

    assert samples(other) == []


def test_the_metrics_text_shows_no_registered_secret() -> None:
    memory = InMemoryTelemetry()
    memory.telemetry.redact("canary-7f3a91")
    memory.telemetry.meter.create_counter("parley.turns").add(1, {"who": "canary-7f3a91"})

    assert samples(memory) == ['parley_turns_total{who="[redacted]"} 1.0']
