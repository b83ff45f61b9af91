/** Going back to before a message: what it deletes is told first, and it can be undone. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { wordsOf } from "../../api/problem.ts";
import type { Message } from "../../api/types.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { plural } from "../../ui/format.ts";
import { Skeleton } from "../../ui/states.tsx";
import { say } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { pathsShown, revertFacts } from "./words.ts";

const PATHS_SHOWN = 5;

interface Props {
  chatId: string;
  message: Message;
  /** Those of the chat that are known. */
  messages: readonly Message[];
  onClose: () => void;
  onReverted: (revertId: string) => void;
}

export function usePreview(chatId: string, messageId: number | undefined) {
  return useQuery({
    queryKey: ["revert-preview", chatId, messageId],
    enabled: messageId !== undefined,
    staleTime: 0,
    queryFn: () =>
      answered(
        api.POST("/api/v1/chats/{chat_id}/revert/preview", {
          params: { path: { chat_id: chatId } },
          body: { message_id: messageId ?? 0, restore_files: true },
        }),
      ),
  });
}

export function RevertDialog({ chatId, message, messages, onClose, onReverted }: Props) {
  const preview = usePreview(chatId, message.id);
  const [restores, setRestores] = useState(true);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const restorable = preview.data?.files?.restored ?? 0;
  const { paths, more } = preview.data ? pathsShown(preview.data, PATHS_SHOWN) : { paths: [], more: 0 };

  async function revert(): Promise<void> {
    setBusy(true);
    try {
      const done = await answered(
        api.POST("/api/v1/chats/{chat_id}/revert", {
          params: { path: { chat_id: chatId } },
          body: { message_id: message.id, restore_files: restores && restorable > 0 },
        }),
      );
      const dropped = done.dropped_queued_messages.length;
      if (dropped) say(`${plural(dropped, "queued message was", "queued messages were")} dropped.`);
      if (done.revert) onReverted(done.revert.id);
      onClose();
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title="Go back to before this message?" onClose={onClose}>
      {preview.isPending && <Skeleton rows={2} />}
      {preview.error && <p className="field-problem" role="alert">{wordsOf(preview.error)}</p>}
      {preview.data && (
        <ul className="revert-facts">
          {revertFacts(preview.data, message.id, messages).map((fact) => <li key={fact}>{fact}</li>)}
        </ul>
      )}
      {paths.length > 0 && (
        <ul className="revert-paths" aria-label="Files that changed since">
          {paths.map((path) => <li key={path}><code><Visible>{path}</Visible></code></li>)}
          {more > 0 && <li>and {plural(more, "more file", "more files")}</li>}
        </ul>
      )}
      {restorable > 0 && (
        <label className="choice">
          <input type="checkbox" checked={restores} onChange={(event) => setRestores(event.target.checked)} />
          {restorable === 1 ? "Put the file back as it was before this message" : `Put the ${restorable} files back as they were before this message`}
        </label>
      )}
      <p className="field-hint">You can undo this until you send another message.</p>
      {problem && <p className="field-problem" role="alert">{problem}</p>}
      <div className="dialog-actions">
        <Button onClick={onClose}>Stay here</Button>
        <Button look="danger" disabled={isBusy || preview.isPending} onClick={() => void revert()}>Go back</Button>
      </div>
    </Dialog>
  );
}
