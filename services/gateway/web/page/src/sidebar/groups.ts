/** Pinned chats first, then the others by the day of their last change. */
import type { Chat } from "../api/types.ts";
import { dayGroup } from "../ui/format.ts";

export interface Group {
  title: string;
  chats: Chat[];
}

const ORDER = ["Pinned", "Today", "Yesterday", "This week", "Older"];

export function groupsOf(chats: readonly Chat[], now: number): Group[] {
  const groups = new Map<string, Chat[]>();
  const known = new Set<string>();
  for (const chat of chats) {
    if (known.has(chat.id)) continue;
    known.add(chat.id);
    const title = chat.pin_order > 0 && !chat.archived ? "Pinned" : dayGroup(chat.updated_at, now);
    groups.set(title, [...(groups.get(title) ?? []), chat]);
  }
  return ORDER.filter((title) => groups.has(title)).map((title) => ({
    title,
    chats: (groups.get(title) ?? []).toSorted((a, b) =>
      title === "Pinned" ? a.pin_order - b.pin_order : newestFirst(a, b),
    ),
  }));
}

function newestFirst(a: Chat, b: Chat): number {
  return (b.updated_at ?? "").localeCompare(a.updated_at ?? "");
}
