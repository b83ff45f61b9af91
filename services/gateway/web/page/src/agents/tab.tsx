/** The agents of a chat tree, from its root on. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { below, chat as chatQuery } from "../api/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import type { TabProps } from "../panel/panel.tsx";
import { plural } from "../ui/format.ts";
import { AgentTree } from "./tree.tsx";

export default function Agents({ chat }: TabProps) {
  const rootId = chat.root_chat_id;
  const root = useQuery({ ...chatQuery(rootId), enabled: chat.id !== rootId }).data;
  return (
    <Loaded query={useQuery(below(rootId))} what="agents">
      {(agents) => (
        <div className="panel-part">
          {chat.id !== rootId && <Link href={`/chats/${rootId}`}>{root?.title || "The chat that started them"}</Link>}
          {agents.length === 0 ? (
            <p className="panel-note">No agents yet. The model starts some when parts of a task can be done side by side.</p>
          ) : (
            <>
              <p className="card-note">{plural(agents.length, "agent")}, {agents.filter((each) => each.status === "running").length} at work</p>
              <AgentTree agents={agents} parentId={rootId} openId={chat.id} />
            </>
          )}
        </div>
      )}
    </Loaded>
  );
}
