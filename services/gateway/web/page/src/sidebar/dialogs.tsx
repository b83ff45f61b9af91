import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { wordsOf } from "../api/problem.ts";
import type { Chat } from "../api/types.ts";
import { ChangedMeanwhile, changeChat } from "../chat/chat-changes.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";

interface Props {
  chat: Chat;
  onClose: () => void;
}

export function RenameDialog({ chat, onClose }: Props) {
  const [title, setTitle] = useState(chat.title);
  // The chat as it was when the title was read.
  const [seen, setSeen] = useState(chat);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const path = { chat_id: chat.id };

  async function rename(): Promise<void> {
    setBusy(true);
    try {
      await changeChat(seen, { title: title.trim() });
      onClose();
    } catch (error) {
      if (error instanceof ChangedMeanwhile) {
        setSeen(error.current);
        setProblem(`It was renamed to “${error.current.title}” meanwhile. Rename replaces that.`);
      } else setProblem(wordsOf(error));
      setBusy(false);
    }
  }

  async function propose(): Promise<void> {
    setBusy(true);
    try {
      setTitle((await answered(api.POST("/api/v1/chats/{chat_id}/title/propose", { params: { path }, body: {} }))).title);
      setProblem("");
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  }

  return (
    <Dialog title="Rename the chat" onClose={onClose}>
      <form
        className="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          void rename();
        }}
      >
        <label className="field">
          <span className="field-label">Title</span>
          <input
            className="input"
            value={title}
            maxLength={200}
            autoFocus
            aria-invalid={Boolean(problem)}
            onChange={(event) => setTitle(event.target.value)}
          />
          {problem && (
            <span className="field-problem" role="alert">
              {problem}
            </span>
          )}
        </label>
        <div className="dialog-actions">
          <Button icon="spark" disabled={isBusy} onClick={() => void propose()}>Propose one</Button>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={isBusy || !title.trim()}>
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function DeleteDialog({ chat, onClose, onDeleted }: Props & { onDeleted: () => void }) {
  const [problem, setProblem] = useState("");
  const path = { chat_id: chat.id };

  async function destroy(): Promise<void> {
    try {
      await answered(api.DELETE("/api/v1/chats/{chat_id}", { params: { path } }));
      onDeleted();
      onClose();
    } catch (error) {
      setProblem(wordsOf(error));
    }
  }

  return (
    <Dialog title="Delete the chat for good?" onClose={onClose}>
      <p>
        “{chat.title || "Untitled"}” and the chats below it are deleted with all their messages. This
        cannot be undone; archiving can.
      </p>
      {problem && (
        <p className="field-problem" role="alert">
          {problem}
        </p>
      )}
      <div className="dialog-actions">
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" onClick={() => void destroy()}>
          Delete
        </Button>
      </div>
    </Dialog>
  );
}
