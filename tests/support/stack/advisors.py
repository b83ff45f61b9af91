"""The advisor of a stack, and models that advise as a scenario at the page needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

ADVISOR = "/api/v1/settings/advisor"
ADVICE = "Begin%20with%20one%20table%20and%20**measure**.%20A%20broker%20can%20come%20later."
#: By their names at the provider, which are words of the grammar of the mock. The slow one is slow
#: enough that a page on a busy machine shows it at work.
MODELS = {
    "slow": f"mock-slow:text={ADVICE},size=4,delay=800ms",
    "failing": "mock-failing:fail=400*",
    "plain": "mock-plain:text=Done.",
}


@dataclass(frozen=True, slots=True)
class Advisors:
    """The advisor of a stack, and models for it.

    Attributes:
        models: The ids of the models, by what they do.
        provider: Their provider, which knows what it was asked.
    """

    stack: LocalStack
    models: dict[str, str]
    provider: MockModels

    def enable(self, model: str = "", *, uses: int = 3) -> None:
        """Let agents ask a model; without a name that of their chat."""
        body = {
            "enabled": True,
            "uses_per_turn_max": uses,
            "model_id": self.models[model] if model else None,
        }
        call(self.stack, "PUT", ADVISOR, body)

    def disable(self) -> None:
        """Take the advisor away."""
        call(self.stack, "PUT", ADVISOR, {"enabled": False})

    def asked(self, model: str) -> list[dict[str, Any]]:
        """Return the requests with tools that a model got."""
        bodies = [
            each.document()["body"]
            for each in self.provider.requests()
            if each.model == MODELS[model]
        ]
        return [each for each in bodies if each.get("tools")]


@asynccontextmanager
async def advisors_of(stack: LocalStack) -> AsyncIterator[Advisors]:
    """Give the models, and take them and the advisor away at the end."""
    async with MockModels.serving(clock=SystemClock()) as provider:
        body = {"name": "advisors", "type": "openai_compatible", "base_url": f"{provider.url}/v1"}
        made = call(stack, "POST", "/api/v1/providers", body)["id"]
        try:
            key = {"provider_id": made, "key": "sk-of-nobody-0123456789"}
            call(stack, "POST", "/api/v1/provider-keys", key)
            models = {
                name: call(stack, "POST", "/api/v1/models", {"provider_id": made, "name": words})
                for name, words in MODELS.items()
            }
            ids = {name: model["id"] for name, model in models.items()}
            yield Advisors(stack, ids, provider)
        finally:
            call(stack, "PUT", ADVISOR, {"enabled": False})
            call(stack, "DELETE", f"/api/v1/providers/{made}")
