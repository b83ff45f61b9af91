/** Running the last turn again: its message is edited to what it says, so that its failed answer goes. */
import { useCallback, useRef } from "react";
import { answered, api } from "../api/client.ts";
import { randomKey } from "../api/transport.ts";
import type { Message } from "../api/types.ts";
import { isEditable, textOf } from "../timeline/user-message.tsx";
import { withText } from "../chat/queue-order.ts";

/** Return the message of the person that began the last turn; null if it is not theirs, or has nothing to send. */
export function turnToRepeat(messages: readonly Message[]): Message | null {
  const last = messages.findLast((each) => each.role === "user");
  if (!last) return null;
  return isEditable(last) && withText(last.content, textOf(last.content)).length > 0 ? last : null;
}

/**
 * Return how the turn of a message is run again. The files are put back to what they were before it. All attempts
 * for one failure have the same key, so it is run once however often that is asked for.
 */
export function useTurnAgain(chatId: string, onStored: (revertId: string) => void): (message: Message) => Promise<void> {
  const last = useRef({ of: "", key: "" });
  return useCallback(
    async (message) => {
      const of = `${chatId} ${message.id} ${message.revision}`;
      if (last.current.of !== of) last.current = { of, key: randomKey() };
      const params = { path: { chat_id: chatId, message_id: message.id }, header: { "Idempotency-Key": last.current.key } };
      const body = { content: withText(message.content, textOf(message.content)), restore_files: true };
      const done = await answered(api.PATCH("/api/v1/chats/{chat_id}/messages/{message_id}", { params, body }));
      onStored(done.revert_id);
    },
    [chatId, onStored],
  );
}
