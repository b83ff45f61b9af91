/** Filters of the list of chats as they are typed: `is:unread` and a space. */

export const FILTERS = [
  ["unread", "Unread"],
  ["shared", "Shared with me"],
  ["archived", "Archived"],
] as const;

export type FilterName = (typeof FILTERS)[number][0];

/** Return the filter that ends what is typed, and the text without it; null if there is none. */
export function typedFilter(text: string): { name: FilterName; text: string } | null {
  const found = /(^|\s)is:(\w+)\s$/.exec(text);
  const name = FILTERS.find(([each]) => each === found?.[2]?.toLowerCase())?.[0];
  return found && name ? { name, text: text.slice(0, found.index).trimEnd() } : null;
}
