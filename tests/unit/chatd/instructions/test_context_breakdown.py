"""The context breakdown counts every part of a prompt once."""

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import ContextFile, Text
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.instructions.domain.breakdown import ContextPart, context_breakdown
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.system_prompt import SystemPrompt, instructions_block
from parley.clock.fake import EPOCH

FILES = (ContextFile("AGENTS.md", "be kind"),)
TOOL = ToolSpec("look", "x" * 36, "", Executor.CHATD)


def row(
    number: int,
    role: Role,
    part: Text,
    visibility: Visibility = Visibility.BOTH,
    *,
    is_compressed: bool = False,
) -> Message:
    return Message(MessageId(number), number, role, (part,), "", EPOCH, visibility, is_compressed)


def test_each_part_of_a_prompt_is_counted_once() -> None:
    history = (
        row(1, Role.SYSTEM, Text("s" * 40), visibility=Visibility.MODEL),
        row(2, Role.USER, Text("h" * 400)),
        row(3, Role.ASSISTANT, Text("a" * 44)),
    )
    system_prompt = SystemPrompt(default_instructions="d" * 20, instruction_files=FILES)
    assert context_breakdown(history, system_prompt, (TOOL,)) == {
        ContextPart.SYSTEM_PROMPT: 15,
        ContextPart.INSTRUCTIONS: -(-len(instructions_block(FILES)) // 4),
        ContextPart.SKILLS: 0,
        ContextPart.TOOLS: 10,
        ContextPart.SUMMARY: 0,
        ContextPart.HISTORY: 111,
    }


def test_a_summary_replaces_the_history_before_it_and_instructions_stay() -> None:
    history = (
        row(1, Role.SYSTEM, Text("s" * 40), visibility=Visibility.MODEL),
        row(2, Role.USER, Text("h" * 400)),
        row(3, Role.USER, Text("m" * 80), visibility=Visibility.MODEL, is_compressed=True),
        row(4, Role.USER, Text("n" * 12)),
    )
    parts = context_breakdown(history, SystemPrompt(instruction_files=FILES), ())
    assert (parts[ContextPart.SUMMARY], parts[ContextPart.HISTORY]) == (20, 3)
    assert parts[ContextPart.INSTRUCTIONS] > 0
