/** The to-do list of a chat: the result of the newest call of the tool `todo`. */
import type { Message, Part } from "../api/types.ts";
import { record, string } from "../cards/outcome.ts";
import { afterGap, type ChatState } from "../stream/chat-state.ts";

export interface Todo {
  id: number;
  text: string;
  status: string | null;
}

/** Return the items in the result of a call. */
export function todosOf(result: unknown): readonly Todo[] {
  const { todos } = record(result);
  return (Array.isArray(todos) ? todos : []).map(record).map((each, place) => ({
    id: typeof each.id === "number" ? each.id : place + 1,
    text: string(each.text),
    status: string(each.status),
  }));
}

/** Return the newest list among messages; null if none of them has one. */
export function newestTodos(messages: readonly Message[]): readonly Todo[] | null {
  // Of a chat without a list all messages are looked at with each one that comes, so nothing is copied.
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const list = messages[at]!.content.findLast(isList);
    if (list?.type === "tool-result") return todosOf(list.result);
  }
  return null;
}

function isList(part: Part): boolean {
  return part.type === "tool-result" && part.tool_name === "todo" && part.outcome === "done" && !part.mcp_server_id;
}

/** Return the list as the loaded messages have it; null if only the server knows it. */
export function loadedTodos(chat: Pick<ChatState, "messages" | "gapAfter" | "hasOlder">): readonly Todo[] | null {
  // A list from before a gap may have been replaced within it.
  const newest = newestTodos(chat.messages.slice(afterGap(chat)));
  return newest ?? (chat.hasOlder || chat.gapAfter !== null ? null : []);
}

export function isOpen({ status }: Todo): boolean {
  return status === "pending" || status === "in_progress";
}
