"""The hooks of chats, as turns and the acceptance of messages use them."""

import asyncio
from collections.abc import Mapping, Sequence

from chatd.chats.domain.errors import HookDenied, HookFailed
from chatd.content.domain.arguments import parsed
from chatd.content.domain.parts import FileReference, HookAddition, Part, Text, ToolCall
from chatd.content.domain.prompts import reference_text
from chatd.content.domain.turn_context import TurnContext
from chatd.hooks.domain.answers import Allowed, Denied, Verdict, bounded_additions
from chatd.hooks.domain.hooks import HookEvent, HookNotice, Occurrence
from chatd.hooks.engine.dispatch import HookDispatcher
from chatd.primitives.domain.ids import ChatId, Owner
from parley.tasks import captured, result_of

NO_HOOK = ""


class ChatHooks:
    """Sends the events of chats to hooks; without hooks nothing is computed or read."""

    def __init__(self, dispatcher: HookDispatcher) -> None:
        self._dispatcher = dispatcher

    def are_absent(self, event: HookEvent) -> bool:
        """Return whether an event is known to have no hooks; False if they have to be read."""
        return self._dispatcher.are_absent(event)

    async def submitted(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: str,
        content: tuple[Part, ...],
        system_prompt: str = "",
    ) -> tuple[Part, ...]:
        """Return the content with which a message of a user is accepted.

        A text that replaces the prompt replaces all parts which the prompt is made of. What hooks
        add is at the end.

        Raises:
            HookDenied: A hook refuses it.
            HookFailed: One that fails closed failed.
        """
        event = HookEvent.USER_PROMPT_SUBMIT
        if not await self._dispatcher.has_hooks(event):
            return content
        texts = [text for part in content if (text := _text_of(part)) is not None]
        data: dict[str, object] = {"prompt": "\n\n".join(texts), "parts": len(content)}
        if system_prompt.strip():
            data["system_prompt"] = system_prompt
        verdict = await self._dispatcher.dispatch(Occurrence(event, chat_id, owner.id, key, data))
        match verdict:
            case Denied(reason):
                raise HookDenied(reason)
            case Allowed(str(text)):
                content = (Text(text), *(part for part in content if _text_of(part) is None))
            case _:
                pass
        return (*content, *bounded_additions(verdict.added))

    async def judge(
        self, context: TurnContext, history_version: int, calls: Sequence[ToolCall]
    ) -> Mapping[str, Verdict]:
        """Return what hooks decide on calls, by their ids; calls without hooks are left out.

        Raises:
            HookFailed: One that fails closed failed, or two calls have the same id.
        """
        event, occurrences = HookEvent.PRE_TOOL_USE, []
        for call in calls:
            if not await self._dispatcher.has_hooks(event, call.tool_name):
                continue
            data = {
                "tool_use_id": call.tool_call_id,
                "tool_name": call.tool_name,
                "tool_input": dict(parsed(call.args_json)),
            }
            key = f"{history_version} {call.tool_call_id}"
            occurrences.append(_of_turn(context, event, key, data, call.tool_name))
        if not occurrences:
            return {}
        if len({call.tool_call_id for call in calls}) < len(calls):
            raise HookFailed(NO_HOOK, "two calls of one answer have the same id")
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(captured(self._dispatcher.dispatch(each))) for each in occurrences
            ]
        return {
            str(occurrence.data["tool_use_id"]): result_of(task.result())
            for occurrence, task in zip(occurrences, asked, strict=True)
        }

    async def stop(self, context: TurnContext, notice: HookNotice) -> Verdict:
        """Send that a turn ends; return what hooks decide on that.

        Raises:
            HookFailed: One that fails closed failed.
        """
        if not await self._dispatcher.has_hooks(notice.event):
            return Allowed()
        occurrence = _of_turn(context, notice.event, notice.key, notice.data, "")
        return await self._dispatcher.dispatch(occurrence)

    async def notify(
        self, context: TurnContext, notices: Sequence[HookNotice]
    ) -> tuple[HookAddition, ...]:
        """Send events that hooks do not decide on, together within the time of one.

        What hooks add is returned.

        Raises:
            HookFailed: One that fails closed failed; the other events were sent.
        """
        occurrences = [
            _of_turn(context, each.event, each.key, each.data, each.tool_name)
            for each in notices
            if await self._dispatcher.has_hooks(each.event, each.tool_name)
        ]
        return await self._dispatcher.notify(occurrences) if occurrences else ()


def _text_of(part: Part) -> str | None:
    """Return the text of a user's part as a model reads it; None if it is no text."""
    match part:
        case Text(text):
            return text
        case FileReference():
            return reference_text(part)
        case _:
            return None


def _of_turn(
    context: TurnContext,
    event: HookEvent,
    key: str,
    data: Mapping[str, object],
    tool_name: str,
) -> Occurrence:
    return Occurrence(
        event,
        context.chat_id,
        context.owner.id,
        key,
        data,
        tool_name=tool_name,
        turn_id=context.turn_id,
        root_chat_id=context.root_chat_id,
        parent_chat_id=context.ancestor_ids[0] if context.ancestor_ids else "",
        workspace_id=context.workspace_id,
    )
