/** Copy a chat up to a message into a new one, and say in which files the copy works. */
import { useState } from "react";
import { useLocation } from "wouter";
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Chat } from "../api/types.ts";
import { Form, useSaving } from "../forms/form.tsx";
import { queryClient } from "../api/queries.ts";
import { upsert } from "../stream/feed.ts";
import { Dialog } from "../ui/dialog.tsx";

type WorkspaceUse = components["schemas"]["ForkWorkspaceUse"];

const USES: readonly (readonly [WorkspaceUse, string, string])[] = [
  ["none", "No files", "It gets an empty workspace when it needs one."],
  ["copy", "A copy of the workspace", "As its files are now. What one chat changes the other does not see."],
  ["same", "The same workspace", "Both chats change the same files."],
];

interface Props {
  chat: Pick<Chat, "id">;
  /** The last message of the copy; null for all of them. */
  messageId: number | null;
  onClose: () => void;
}

export function ForkDialog({ chat, messageId, onClose }: Props) {
  const [use, setUse] = useState<WorkspaceUse>("none");
  const [, navigate] = useLocation();
  const saving = useSaving();

  async function fork(): Promise<void> {
    const body = { workspace: use, ...(messageId === null ? {} : { message_id: messageId }) };
    const made = await answered(api.POST("/api/v1/chats/{chat_id}/fork", { params: { path: { chat_id: chat.id } }, body }));
    queryClient.setQueryData(["chat", made.id], made);
    upsert(made);
    onClose();
    navigate(`/chats/${made.id}`);
  }

  return (
    <Dialog title="Fork the chat" onClose={onClose}>
      <Form saving={saving} label="Fork" onSubmit={() => void saving.save(fork)} onCancel={onClose}>
        <p>{messageId === null ? "All messages are copied into a new chat." : "The messages up to this one are copied into a new chat."}</p>
        <fieldset className="choices">
          <legend className="field-label">Files</legend>
          {USES.map(([value, label, hint]) => (
            <label key={value} className="choice">
              <input type="radio" name="workspace" value={value} checked={use === value} onChange={() => setUse(value)} />
              <span>
                {label}
                <span className="field-hint"> {hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
      </Form>
    </Dialog>
  );
}
