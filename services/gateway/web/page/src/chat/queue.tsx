/** Messages that wait for the end of the turn, and those that wait for the connection. */
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import type { QueuedMessage } from "../api/types.ts";
import { discard, type Outgoing } from "../composer/outbox.ts";
import { textOf } from "../timeline/user-message.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { complain } from "../ui/toasts.tsx";

interface Props {
  chatId: string;
  queue: readonly QueuedMessage[];
  outgoing: readonly Outgoing[];
}

export function Queue({ chatId, queue, outgoing }: Props) {
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const shown = queue.filter((each) => !removed.has(each.id));
  if (shown.length === 0 && outgoing.length === 0) return null;

  async function remove(id: string): Promise<void> {
    setRemoved(new Set([...removed, id]));
    const path = { chat_id: chatId, queued_message_id: id };
    try {
      await answered(api.DELETE("/api/v1/chats/{chat_id}/queue/{queued_message_id}", { params: { path } }));
    } catch (error) {
      setRemoved((was) => new Set([...was].filter((each) => each !== id)));
      complain(error);
    }
  }

  async function sendNow(id: string): Promise<void> {
    const path = { chat_id: chatId, queued_message_id: id };
    try {
      await answered(
        api.POST("/api/v1/chats/{chat_id}/queue/{queued_message_id}/promote", { params: { path }, body: {} }),
      );
    } catch (error) {
      complain(error);
    }
  }

  return (
    <ul className="queue" aria-label="Queued messages">
      <li className="queue-title">{shown.length ? "Sent after this turn" : "Waits for the connection"}</li>
      {shown.map((each) => (
        <li key={each.id}>
          <span className="queue-text">{textOf(each.content) || "Files"}</span>
          <Button small look="quiet" onClick={() => void sendNow(each.id)}>Send now</Button>
          <IconButton icon="close" label="Remove from the queue" onClick={() => void remove(each.id)} />
        </li>
      ))}
      {outgoing.map((each) => (
        <li key={each.key}>
          <span className="queue-text">
            {each.content.map((part) => (part.type === "text" ? part.text : "")).join(" ") || "Files"}
          </span>
          <span className="badge is-warn">not stored yet</span>
          <IconButton icon="close" label="Do not send" onClick={() => discard(each.key)} />
        </li>
      ))}
    </ul>
  );
}
