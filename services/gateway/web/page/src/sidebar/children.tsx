/** The chats that an agent started below a chat: each with its status and its cost. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "wouter";
import { ownCost } from "../agents/own-cost.ts";
import { dotOf, useStanding, wordsOfStatus } from "../agents/status.ts";
import { below } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { ago } from "../ui/format.ts";
import { Skeleton } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { useChatUsage } from "../usage/queries.ts";

interface Props {
  parent: Chat;
  openId: string | null;
  now: number;
}

export function Children({ parent, openId, now }: Props) {
  const query = useQuery(below(parent.root_chat_id));
  if (query.isPending) return <Skeleton rows={1} label="Loading chats below" />;
  return (
    <ul className="side-rows is-below" aria-label="Chats below">
      {(query.data ?? [])
        .filter((each) => each.parent_chat_id === parent.id)
        .map((child) => (
          <Child key={child.id} chat={child} openId={openId} now={now} />
        ))}
    </ul>
  );
}

function Child({ chat, openId, now }: { chat: Chat; openId: string | null; now: number }) {
  const search = useSearch();
  const cost = ownCost(useChatUsage(chat).data);
  const standing = useStanding(chat);
  const words = wordsOfStatus(chat, standing);
  return (
    <li className="chat-row">
      <Link
        className="chat-row-link"
        href={`/chats/${chat.id}${search ? `?${search}` : ""}`}
        {...(chat.id === openId ? { "aria-current": "page" as const } : {})}
      >
        <span className={`status-dot ${dotOf(chat, false, standing)}`} aria-hidden="true" />
        <span className="chat-row-title">
          <Visible>{chat.title || "Untitled"}</Visible>
          {words && <span className="visually-hidden"> ({words})</span>}
        </span>
        <time className="chat-row-time" dateTime={chat.updated_at ?? ""}>{ago(chat.updated_at, now)}</time>
        {cost && <span className="chat-row-facts">{cost}</span>}
      </Link>
      {chat.child_count > 0 && <Children parent={chat} openId={openId} now={now} />}
    </li>
  );
}
