/** Agents as a tree: each with its status, model, what it said last, its cost, and what to do with its work. */
import "./agents.css";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { models } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { Visible } from "../ui/visible.tsx";
import { useChatUsage } from "../usage/queries.ts";
import { ForkActions } from "./fork-actions.tsx";
import { ownCost } from "./own-cost.ts";
import { dotOf, useStanding, wordsOfStatus } from "./status.ts";
import { modelWords } from "./words.ts";

interface TreeProps {
  agents: readonly Chat[];
  parentId: string;
  /** The chat that is shown beside the tree. */
  openId?: string;
}

export function AgentTree({ agents, parentId, openId }: TreeProps) {
  return (
    <ul className="agent-tree">
      {agents
        .filter((each) => each.parent_chat_id === parentId)
        .map((agent) => (
          <li key={agent.id}>
            <AgentRow agent={agent} isOpen={agent.id === openId} />
            <ForkActions agent={agent} />
            {agent.child_count > 0 && (
              <AgentTree agents={agents} parentId={agent.id} {...(openId ? { openId } : {})} />
            )}
          </li>
        ))}
    </ul>
  );
}

export function AgentRow({ agent, isOpen = false }: { agent: Chat; isOpen?: boolean }) {
  const standing = useStanding(agent);
  const model = modelWords(agent, useQuery(models).data?.items ?? []);
  const cost = ownCost(useChatUsage(agent).data);
  const line = agent.last_error?.message ?? agent.last_turn_summary ?? agent.summary;
  return (
    <Link className="agent-row" href={`/chats/${agent.id}`} {...(isOpen ? { "aria-current": "page" as const } : {})}>
      <span className={`status-dot ${dotOf(agent, false, standing)}`} aria-hidden="true" />
      <span className="agent-name">
        <Visible>{agent.title || "Untitled"}</Visible>
      </span>
      <span className="agent-facts">
        {wordsOfStatus(agent, standing) || "has ended"}
        {model && <> · <Visible>{model}</Visible></>}
        {cost && ` · ${cost}`}
      </span>
      {line && <span className="agent-line"><Visible>{line}</Visible></span>}
    </Link>
  );
}
