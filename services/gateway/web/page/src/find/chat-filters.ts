/** Filters of the chats that are found. */
import type { FilterName } from "../sidebar/typed-filters.ts";

/** Add a filter. Shared and archived chats are separate lists, so these two take each other's place. */
export function withFilter(filters: readonly FilterName[], added: FilterName): readonly FilterName[] {
  const others = filters.filter((each) => each !== added && (added === "unread" || each === "unread"));
  return [...others, added];
}

/** Write filters and words as the search of the API understands them. */
export function queryOf(words: string, filters: readonly FilterName[]): { q?: string; archived?: true; shared_with_me?: true } {
  const unread = filters.includes("unread") ? ["has_unread:true"] : [];
  const terms = words ? [...unread, `title:"${words.replaceAll('"', '""')}"`] : unread;
  return {
    ...(terms.length ? { q: terms.join(" ") } : {}),
    ...(filters.includes("archived") ? { archived: true as const } : {}),
    ...(filters.includes("shared") ? { shared_with_me: true as const } : {}),
  };
}
