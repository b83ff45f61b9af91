/** Whether a chat of a list waits for its agents, concluded from what is asked of a person. */
import type { Chat } from "../api/types.ts";

interface Asked {
  items: readonly { chat_id: string }[];
  next_cursor: string | null;
}

/** Whether a chat of a list may wait for agents: it has some, and a list of what is asked says more of it. */
export function mayWaitForAgents(chat: Chat, userId: string | undefined): boolean {
  return chat.status === "requires_action" && chat.child_count > 0 && chat.owner_id === userId;
}

/** Whether nothing of a chat is asked of a person, which is known only if all that is asked is there. */
export function asksNothing(chat: Chat, asked: Asked): boolean {
  return !asked.next_cursor && !asked.items.some((each) => each.chat_id === chat.id);
}
