/** Pinned chats first, then the others by the day of their last change or by their status. */
import type { Chat } from "../api/types.ts";
import { dayGroup } from "../ui/format.ts";

export interface Group {
  title: string;
  chats: Chat[];
}

export type Grouping = "day" | "status";

const PINNED = "Pinned";
const ORDER: Record<Grouping, readonly string[]> = {
  day: [PINNED, "Today", "Yesterday", "This week", "Older"],
  status: [PINNED, "Waits for an answer", "At work", "Stopped with an error", "Unread", "At rest"],
};

function statusGroup(chat: Chat): string {
  if (chat.status === "requires_action") return "Waits for an answer";
  if (chat.status === "running" || chat.status === "interrupting") return "At work";
  if (chat.status === "error") return "Stopped with an error";
  return chat.has_unread ? "Unread" : "At rest";
}

export function groupsOf(chats: readonly Chat[], now: number, by: Grouping): Group[] {
  const groups = new Map<string, Chat[]>();
  const known = new Set<string>();
  for (const chat of chats) {
    if (known.has(chat.id)) continue;
    known.add(chat.id);
    const isPinned = chat.pin_order > 0 && !chat.archived;
    const title = isPinned ? PINNED : by === "status" ? statusGroup(chat) : dayGroup(chat.updated_at, now);
    groups.set(title, [...(groups.get(title) ?? []), chat]);
  }
  return ORDER[by].filter((title) => groups.has(title)).map((title) => ({
    title,
    chats: (groups.get(title) ?? []).toSorted((a, b) =>
      title === PINNED ? a.pin_order - b.pin_order : newestFirst(a, b),
    ),
  }));
}

function newestFirst(a: Chat, b: Chat): number {
  return (b.updated_at ?? "").localeCompare(a.updated_at ?? "");
}
