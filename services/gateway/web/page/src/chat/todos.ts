/** The to-do list of a chat: the result of the newest call of the tool `todo`. */
import type { Message } from "../api/types.ts";
import { record, string } from "../cards/outcome.ts";

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
  for (const message of messages.toReversed()) {
    for (const part of message.content.toReversed()) {
      if (part.type === "tool-result" && part.tool_name === "todo" && part.outcome === "done" && !part.mcp_server_id) {
        return todosOf(part.result);
      }
    }
  }
  return null;
}

export function isOpen({ status }: Todo): boolean {
  return status === "pending" || status === "in_progress";
}
