/** The chats that an agent started below a chat: each with its status and its cost. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "wouter";
import { chatUsage, childrenOf } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { ago, money } from "../ui/format.ts";
import { Skeleton } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { dotOf, STATUS_WORDS } from "./row.tsx";

interface Props {
  parentId: string;
  openId: string | null;
  now: number;
}

export function Children({ parentId, openId, now }: Props) {
  const query = useQuery(childrenOf(parentId));
  if (query.isPending) return <Skeleton rows={1} label="Loading chats below" />;
  return (
    <ul className="side-rows is-below" aria-label="Chats below">
      {(query.data ?? []).map((child) => (
        <Child key={child.id} chat={child} openId={openId} now={now} />
      ))}
    </ul>
  );
}

function Child({ chat, openId, now }: { chat: Chat; openId: string | null; now: number }) {
  const search = useSearch();
  const usage = useQuery(chatUsage(chat.id)).data?.totals;
  const words = STATUS_WORDS[chat.status ?? ""];
  return (
    <li className="chat-row">
      <Link
        className="chat-row-link"
        href={`/chats/${chat.id}${search ? `?${search}` : ""}`}
        {...(chat.id === openId ? { "aria-current": "page" as const } : {})}
      >
        <span className={`status-dot ${dotOf(chat, false)}`} aria-hidden="true" />
        <span className="chat-row-title">
          <Visible>{chat.title || "Untitled"}</Visible>
          {words && <span className="visually-hidden"> ({words})</span>}
        </span>
        <time className="chat-row-time" dateTime={chat.updated_at ?? ""}>{ago(chat.updated_at, now)}</time>
        {usage && usage.priced_calls > 0 && <span className="chat-row-facts">{money(usage.cost_micros)}</span>}
      </Link>
      {chat.child_count > 0 && <Children parentId={chat.id} openId={openId} now={now} />}
    </li>
  );
}
