/** The monitors of a chat: which processes wake it, by what, and what became of each. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { me, queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Button } from "../ui/button.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { isLive, type Monitor, wordsOfMonitor } from "./monitor-words.ts";

const READ_AGAIN_MS = 3_000;
/** New ones are made by calls of the model, while none waits. */
const LOOK_AGAIN_MS = 10_000;
const LOOKS: Record<string, string> = { waiting: "is-accent", due: "is-accent", woken: "", ended: "is-warn" };

function monitors(chatId: string) {
  return queryOptions({
    queryKey: ["chat", chatId, "monitors"],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/chats/{chat_id}/monitors", { params: { path: { chat_id: chatId } }, signal })),
    refetchInterval: (query) => (query.state.data?.items.some(isLive) ? READ_AGAIN_MS : LOOK_AGAIN_MS),
  });
}

/** Nothing for agents, which have no monitors, and for people who only read the chat. */
export function Monitors({ chat }: { chat: Chat }) {
  const isMine = useQuery(me).data?.id === chat.owner_id && !chat.parent_chat_id;
  const query = useQuery({ ...monitors(chat.id), enabled: isMine });
  // Most chats have none, so nothing is shown in their place while they load.
  if (!isMine || query.isPending) return null;
  return (
    <Loaded query={query} what="list of monitors">
      {({ items }) =>
        items.length > 0 && (
          <section className="panel-part" aria-label="Monitors">
            <h3 className="panel-heading">Monitors</h3>
            {items.map((each) => <Row key={each.id} monitor={each} />)}
          </section>
        )
      }
    </Loaded>
  );
}

function Row({ monitor }: { monitor: Monitor }) {
  const state = monitor.state ?? "unknown";
  const words = wordsOfMonitor(monitor, (at) => new Date(at).toLocaleTimeString());
  return (
    <div role="group" aria-label={`Monitor of ${monitor.command}`}>
      <div className="section-bar">
        <code className="entry-name"><Visible>{monitor.command}</Visible></code>
        <span className={`badge ${LOOKS[state] ?? ""}`}>{state}</span>
      </div>
      <p className="panel-note">
        {monitor.pattern ? <>Wakes the chat at a line with <code><Visible>{monitor.pattern}</Visible></code>, or at the end.</> : "Wakes the chat at the end."}{" "}
        {monitor.note && <>Note: <Visible>{monitor.note}</Visible></>}
      </p>
      {words && <p className="panel-note"><Visible>{words}</Visible></p>}
      {isLive(monitor) && <Cancel monitor={monitor} />}
    </div>
  );
}

function Cancel({ monitor }: { monitor: Monitor }) {
  const [isBusy, setBusy] = useState(false);

  async function cancel(): Promise<void> {
    const params = { path: { chat_id: monitor.chat_id, monitor_id: monitor.id } };
    setBusy(true);
    try {
      await answered(api.POST("/api/v1/chats/{chat_id}/monitors/{monitor_id}/cancel", { params, body: {} }));
      say("The monitor is cancelled.");
    } catch (error) {
      complain(error);
    }
    setBusy(false);
    await queryClient.invalidateQueries({ queryKey: monitors(monitor.chat_id).queryKey });
  }

  return (
    <Button small look="danger" disabled={isBusy} aria-label={`Cancel the monitor of ${monitor.command}`} onClick={() => void cancel()}>
      Cancel
    </Button>
  );
}
