from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    File,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage
from chatd.providers.switching import PromptTarget, for_target

OWNERS = {"sonnet": "anthropic", "opus": "anthropic", "gpt": "openai"}
SEARCH = ToolCall("s1", "web_search", "{}", provider_executed=True, provider_metadata="m")
FOUND = ToolResult("s1", "web_search", "{}", ToolOutcome.DONE, provider_executed=True)
LOCAL = ToolCall("c1", "execute", "{}", provider_metadata="m")
THOUGHT = Reasoning("hm", provider_metadata="signature")
WORDLESS = Reasoning("", provider_metadata="redacted")
SAID = Text("said", provider_metadata="m")


def answer(model_id: str, *content: Part) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, content, model_id)


def switched(*messages: PromptMessage, is_bound: bool = False) -> tuple[PromptMessage, ...]:
    reader = PromptTarget("sonnet", "anthropic", has_bound_reasoning=is_bound)
    return for_target(messages, reader, lambda model_id: OWNERS.get(model_id, ""))


def test_what_the_same_provider_wrote_stays_as_it_is_whichever_model_it_was() -> None:
    own = answer("sonnet", THOUGHT, WORDLESS, SEARCH, FOUND, SAID, LOCAL)
    other_model = answer("opus", SAID)
    assert switched(own, other_model) == (own, other_model)


def test_what_another_provider_wrote_loses_its_own_calls_and_its_metadata() -> None:
    foreign = answer("gpt", THOUGHT, WORDLESS, SEARCH, FOUND, SAID, LOCAL)
    plain = answer("gpt", Reasoning("hm"), Text("said"), ToolCall("c1", "execute", "{}"))
    assert switched(foreign) == (plain,)


def test_thoughts_of_another_model_stay_away_where_they_are_bound_to_their_model() -> None:
    own = answer("sonnet", THOUGHT, WORDLESS, SEARCH, FOUND, SAID, LOCAL)
    other = answer("opus", THOUGHT, WORDLESS, SEARCH, FOUND, SAID, LOCAL)
    thoughtless = answer("opus", Reasoning("hm"), SEARCH, FOUND, SAID, LOCAL)
    assert switched(own, other, is_bound=True) == (own, thoughtless)


def test_a_writer_that_nobody_knows_is_another() -> None:
    assert switched(answer("", SAID), answer("gone", SAID)) == (
        answer("", Text("said")),
        answer("gone", Text("said")),
    )


def test_a_message_that_has_nothing_left_is_dropped() -> None:
    user = PromptMessage(Role.USER, (Text("hello"),))
    assert switched(user, answer("gpt", SEARCH, FOUND, WORDLESS), user) == (user, user)


def test_only_answers_change() -> None:
    system = PromptMessage(Role.SYSTEM, (SAID,))
    user = PromptMessage(Role.USER, (SAID, File("f", "image/png")))
    result = PromptMessage(Role.TOOL, (ToolResult("c1", "execute", "{}", ToolOutcome.DONE),))
    assert switched(system, user, result) == (system, user, result)
