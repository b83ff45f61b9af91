/** Tells that the workspace has other instruction files than those in the prompts of the chat. */
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/states.tsx";
import { complain, say } from "../ui/toasts.tsx";

export function DriftNotice({ chat }: { chat: Chat }) {
  const [isBusy, setBusy] = useState(false);
  if (!chat.instructions_drifted) return null;

  async function refresh(): Promise<void> {
    setBusy(true);
    try {
      const params = { path: { chat_id: chat.id } };
      await answered(api.POST("/api/v1/chats/{chat_id}/context/refresh", { params, body: {} }));
      await queryClient.invalidateQueries({ queryKey: ["chat", chat.id] });
      say("The next turn reads the present files.");
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Notice icon="file" actions={<Button small disabled={isBusy} onClick={() => void refresh()}>Refresh</Button>}>
      The instruction files of the workspace have changed since this chat read them.
    </Notice>
  );
}
