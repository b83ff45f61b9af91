/** Tells that the workspace brings MCP servers along that are not trusted yet, and leads to their definitions. */
import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { Chat, ChatStatus, Message } from "../api/types.ts";
import { showPanel } from "../panel/tabs/panel-state.ts";
import { changeTabs, panelTabs, tabsOf } from "../panel/tabs/panel-tabs.ts";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { putOff, putOffServers, settledAt, waitingForTrust } from "./workspace/untrusted.ts";
import { serversAt } from "./workspace/query.ts";

interface Props {
  chat: Chat;
  status: ChatStatus | null;
  messages: readonly Message[];
}

export function ServersNotice({ chat, status, messages }: Props) {
  const later = useSyncExternalStore(putOffServers.subscribe, putOffServers.get);
  const query = serversAt(chat.id, settledAt(status, messages));
  const found = useQuery({ ...query, placeholderData: (before) => before }).data;
  const waiting = waitingForTrust(chat.id, found?.servers ?? [], later);
  if (waiting.length === 0) return null;

  function review(): void {
    const tabs = tabsOf(panelTabs.get(), chat.id);
    changeTabs({ ...tabs, open: "servers", hidden: tabs.hidden.filter((each) => each !== "servers") });
    showPanel(true);
  }

  return (
    <Notice
      icon="tool"
      actions={
        <>
          <Button small onClick={review}>Review</Button>
          <Button small look="quiet" onClick={() => putOff(chat.id, waiting)}>Not now</Button>
        </>
      }
    >
      The workspace brings {plural(waiting.length, "MCP server")} along that you have not trusted:{" "}
      <Visible>{waiting.map((each) => each.name).join(", ")}</Visible>. Until then {waiting.length > 1 ? "they are" : "it is"} not started.
    </Notice>
  );
}
