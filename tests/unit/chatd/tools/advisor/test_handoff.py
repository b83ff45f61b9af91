"""The prompt of the advisor: instructions, the recent conversation as text, and the question."""

from chatd.content.domain.conversations import MESSAGE_BYTES_MAX, RECENT_MESSAGES_MAX
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
from chatd.tools.advisor.handoff import (
    CONTRACT,
    QUESTION_CHARACTERS_MAX,
    STEP_CHARACTERS_MAX,
    SYSTEM_BYTES_MAX,
    handoff,
)

GUIDANCE = "Ask the advisor."


def system(text: str) -> PromptMessage:
    return PromptMessage(Role.SYSTEM, (Text(text),))


def user(*parts: Part | str) -> PromptMessage:
    return PromptMessage(
        Role.USER, tuple(Text(part) if isinstance(part, str) else part for part in parts)
    )


def agent(*parts: Part) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, parts)


def result(call_id: str, name: str, result_json: str) -> PromptMessage:
    return PromptMessage(Role.TOOL, (ToolResult(call_id, name, result_json, ToolOutcome.DONE),))


def background(*messages: PromptMessage, answer: tuple[Part, ...] = ()) -> str:
    """Return the text about the conversation in the handoff."""
    told = handoff(messages, answer, "why?", GUIDANCE)
    assert told[-1] == user("The agent asks you: why?")
    (text,) = (part.text for part in told[-2].content if isinstance(part, Text))
    return text


def test_instructions_come_first_the_contract_last_of_them_and_the_guidance_is_left_out() -> None:
    prompt = (system("Be kind."), system(GUIDANCE), user("build it"))
    assert handoff(prompt, (), "  how?  ", GUIDANCE) == (
        system("Be kind."),
        system(CONTRACT),
        user("The recent conversation of the agent, oldest first:\n\n[user] build it"),
        user("The agent asks you: how?"),
    )


def test_without_a_conversation_there_is_only_the_question() -> None:
    assert handoff((), (), "how?", GUIDANCE) == (system(CONTRACT), user("The agent asks you: how?"))


def test_the_newest_instructions_are_kept_and_one_that_is_too_large_is_skipped() -> None:
    prompt = (
        system("oldest" + "x" * SYSTEM_BYTES_MAX),
        system("old" + "x" * (SYSTEM_BYTES_MAX - 100)),
        system("y" * (SYSTEM_BYTES_MAX + 1)),
        system("newest"),
    )
    kept = [
        message for message in handoff(prompt, (), "?", GUIDANCE) if message.role is Role.SYSTEM
    ]
    assert kept == [prompt[1], prompt[3], system(CONTRACT)]


def test_calls_are_told_with_their_results_and_no_call_is_left_in_the_prompt() -> None:
    call = ToolCall("1", "execute", '{"command": "ls"}')
    told = background(
        user("look", File("f", "image/png", "a.png")),
        agent(Text("I look."), call),
        result("1", "execute", '{"ok": true}'),
        result("9", "read_file", '{"orphan": 1}'),
        agent(ToolCall("2", "execute", "{}")),
    )
    assert told == (
        "The recent conversation of the agent, oldest first:\n\n"
        "[user] look\n[a file of type image/png, a.png]\n\n"
        "[agent] I look.\n\n"
        '[tool execute] {"command": "ls"}\ndone: {"ok": true}\n\n'
        '[tool read_file]\ndone: {"orphan": 1}\n\n'
        "[tool execute] {}"
    )


def test_of_many_messages_the_newest_are_kept_and_a_large_one_is_cut() -> None:
    many = [user(f"message {number}") for number in range(RECENT_MESSAGES_MAX + 5)]
    told = background(*many)
    assert "message 4\n" not in told
    assert told.count("[user]") == RECENT_MESSAGES_MAX
    large = background(user("before"), result("1", "read_file", "z" * 100_000), user("after"))
    assert "before" in large
    assert large.endswith("[user] after")
    assert len(large.encode()) < MESSAGE_BYTES_MAX + 200


def test_older_messages_are_left_out_without_gaps_when_the_budget_is_used() -> None:
    sizes = [user(f"{number} " + "w" * 3900) for number in range(5)]
    told = background(user("small"), *sizes)
    assert [number for number in range(5) if f"[user] {number} " in told] == [2, 3, 4]
    assert "small" not in told


def test_the_end_of_what_the_agent_thought_and_wrote_in_this_step_is_told() -> None:
    thought = Reasoning("a" + "t" * STEP_CHARACTERS_MAX)
    told = background(answer=(thought, Text("I am stuck."), ToolCall("1", "advisor", "{}")))
    assert told == (
        f"The agent's thoughts in this step:\n{'t' * STEP_CHARACTERS_MAX}\n\n"
        "What the agent wrote in this step:\nI am stuck."
    )


def test_a_long_question_is_cut() -> None:
    asked = handoff((), (), "q" * 10_000, GUIDANCE)[-1].content[0]
    assert isinstance(asked, Text)
    assert len(asked.text) == QUESTION_CHARACTERS_MAX + len("The agent asks you: ")
