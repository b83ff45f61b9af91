/** Messages that wait for the end of the turn, and those that wait for the connection. */
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { randomKey } from "../api/transport.ts";
import type { InputPart, QueuedMessage } from "../api/types.ts";
import { discard, type Outgoing, sendAgain } from "../outbox/outbox.ts";
import { textOf } from "../timeline/user-message.tsx";
import { announce } from "../ui/announce.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { complain } from "../ui/toasts.tsx";
import { movedTo, withText } from "./queue-order.ts";

interface Props {
  chatId: string;
  queue: readonly QueuedMessage[];
  outgoing: readonly Outgoing[];
}

const DRAGGED = "application/x-parley-queued";

export function Queue({ chatId, queue, outgoing }: Props) {
  // What was changed here is shown at once; what the server says takes its place.
  const [shown, setShown] = useState(queue);
  const [told, setTold] = useState(queue);
  const [editing, setEditing] = useState<{ id: string; text: string } | null>(null);
  // In the same update: a message that was stored leaves the outbox with it.
  if (told !== queue) {
    setTold(queue);
    setShown(queue);
  }
  if (shown.length === 0 && outgoing.length === 0) return null;

  const pathOf = (id: string) => ({ params: { path: { chat_id: chatId, queued_message_id: id } } });

  async function attempt(next: readonly QueuedMessage[], work: () => Promise<unknown>): Promise<boolean> {
    setShown(next);
    try {
      await work();
      return true;
    } catch (error) {
      setShown(queue);
      complain(error);
      return false;
    }
  }

  function remove(id: string): Promise<boolean> {
    const rest = shown.filter((each) => each.id !== id);
    return attempt(rest, () => answered(api.DELETE("/api/v1/chats/{chat_id}/queue/{queued_message_id}", pathOf(id))));
  }

  function sendNow(id: string): Promise<boolean> {
    return attempt(shown, () =>
      answered(api.POST("/api/v1/chats/{chat_id}/queue/{queued_message_id}/promote", { ...pathOf(id), body: {} })),
    );
  }

  function move(id: string, place: number): Promise<boolean> {
    if (place < 1 || place > shown.length || shown[place - 1]?.id === id) return Promise.resolve(false);
    announce(`Number ${place} of ${shown.length}`);
    return attempt(movedTo(shown, id, place), () =>
      answered(api.PATCH("/api/v1/chats/{chat_id}/queue/{queued_message_id}", { ...pathOf(id), body: { place } })),
    );
  }

  async function edit(message: QueuedMessage, text: string): Promise<void> {
    const content = withText(message.content, text);
    setEditing(null);
    if (content.length === 0) return;
    const next = shown.map((each) => (each.id === message.id ? { ...each, content: content as QueuedMessage["content"] } : each));
    const { path } = pathOf(message.id).params;
    // With a key it is sent again where no answer came.
    const params = { path, header: { "Idempotency-Key": randomKey() } };
    const isStored = await attempt(next, () =>
      answered(api.PATCH("/api/v1/chats/{chat_id}/queue/{queued_message_id}", { params, body: { content } })),
    );
    // What was typed is never lost, unless another one is edited by now.
    if (!isStored) setEditing((since) => since ?? { id: message.id, text });
  }

  return (
    <ul className="queue" aria-label="Queued messages">
      <li className="queue-title">{shown.length ? "Sent after this turn" : "Waits for the connection"}</li>
      {shown.map((each, index) =>
        editing?.id === each.id ? (
          <li key={each.id}>
            <EditForm text={editing.text} onSave={(text) => void edit(each, text)} onCancel={() => setEditing(null)} />
          </li>
        ) : (
          <Row
            key={each.id}
            message={each}
            place={index + 1}
            total={shown.length}
            onMove={(id, place) => void move(id, place)}
            onEdit={() => setEditing({ id: each.id, text: textOf(each.content) })}
            onSend={() => void sendNow(each.id)}
            onRemove={() => void remove(each.id)}
          />
        ),
      )}
      {outgoing.map((each) => (
        <li key={each.key}>
          <span className="queue-text">{wordsOfParts(each.content)}</span>
          {each.refusal === undefined ? (
            <span className="badge is-warn">not stored yet</span>
          ) : (
            <>
              <span className="badge is-warn" role="alert">not sent: {each.refusal}</span>
              <IconButton icon="send" label="Send again" onClick={() => sendAgain(each.key)} />
            </>
          )}
          <IconButton icon="close" label="Do not send" onClick={() => discard(each.key)} />
        </li>
      ))}
    </ul>
  );
}

function wordsOfParts(parts: readonly InputPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join(" ") || "Files";
}

interface RowProps {
  message: QueuedMessage;
  place: number;
  total: number;
  onMove: (id: string, place: number) => void;
  onEdit: () => void;
  onSend: () => void;
  onRemove: () => void;
}

function Row({ message, place, total, onMove, onEdit, onSend, onRemove }: RowProps) {
  const files = message.content.filter((part) => part.type !== "text").length;
  return (
    <li
      className="queue-row"
      draggable
      onDragStart={(event) => event.dataTransfer.setData(DRAGGED, message.id)}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault();
      }}
      onDrop={(event) => {
        const id = event.dataTransfer.getData(DRAGGED);
        if (!id) return;
        event.preventDefault();
        onMove(id, place);
      }}
      onKeyDown={(event) => {
        if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        event.preventDefault();
        onMove(message.id, place + (event.key === "ArrowUp" ? -1 : 1));
      }}
    >
      <button type="button" className="queue-text" title="Edit; Alt and the arrow keys move it" onClick={onEdit}>
        {textOf(message.content) || "Files"}
      </button>
      {files > 0 && <span className="card-note">{plural(files, "file")}</span>}
      {total > 1 && (
        <>
          <IconButton icon="arrowUp" label="Send it earlier" disabled={place === 1} onClick={() => onMove(message.id, place - 1)} />
          <IconButton icon="arrowDown" label="Send it later" disabled={place === total} onClick={() => onMove(message.id, place + 1)} />
        </>
      )}
      <Button small look="quiet" onClick={onSend}>Send now</Button>
      <IconButton icon="edit" label="Edit the queued message" onClick={onEdit} />
      <IconButton icon="close" label="Remove from the queue" onClick={onRemove} />
    </li>
  );
}

interface EditFormProps {
  text: string;
  onSave: (text: string) => void;
  onCancel: () => void;
}

function EditForm({ text, onSave, onCancel }: EditFormProps) {
  const [value, setValue] = useState(text);
  return (
    <form
      className="queue-edit"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(value);
      }}
    >
      <textarea
        className="input"
        aria-label="Text of the queued message"
        rows={Math.min(6, value.split("\n").length)}
        value={value}
        autoFocus
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") {
            event.stopPropagation();
            onCancel();
          } else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            onSave(value);
          }
        }}
      />
      <Button small look="primary" type="submit">Save</Button>
      <Button small onClick={onCancel}>Cancel</Button>
    </form>
  );
}
