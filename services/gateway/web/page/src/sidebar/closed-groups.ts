/** The groups of the list of chats that are closed, kept in this browser. */
import { createStore } from "../ui/stores/store.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

const KEY = "parley.side.closed";

/** Read titles that are stored; what is no list of titles is nothing. */
export function parsedTitles(text: string | null): readonly string[] {
  try {
    const found = JSON.parse(text ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export const closedGroups = createStore<readonly string[]>(parsedTitles(readStored(KEY)));

export function toggleGroup(title: string): void {
  const was = closedGroups.get();
  const next = was.includes(title) ? was.filter((each) => each !== title) : [...was, title];
  closedGroups.set(next);
  writeStored(KEY, next.length ? JSON.stringify(next) : null);
}
