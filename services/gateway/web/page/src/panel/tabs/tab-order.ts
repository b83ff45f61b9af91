/** The order of the tabs of the panel, the same in all chats and kept in this browser. */
import { createStore } from "../../ui/stores/store.ts";
import { readStored, writeStored } from "../../ui/stores/stored.ts";

const KEY = "parley.panel.order";

/** Return things in the order of their names; those that it does not name come behind, as they are. */
export function ordered<T extends { name: string }>(all: readonly T[], order: readonly string[]): readonly T[] {
  const placeOf = (each: T): number => (order.includes(each.name) ? order.indexOf(each.name) : order.length);
  return all.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Return names with one of them put at the place of another. */
export function withMoved(names: readonly string[], moved: string, to: string): readonly string[] {
  const place = names.indexOf(to);
  if (place === -1 || !names.includes(moved)) return names;
  return names.filter((each) => each !== moved).toSpliced(place, 0, moved);
}

/** Read what is stored; what is no list of names is nothing. */
export function parsedOrder(text: string | null): readonly string[] {
  try {
    const found = JSON.parse(text ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export const tabOrder = createStore<readonly string[]>(parsedOrder(readStored(KEY)));

export function changeOrder(names: readonly string[]): void {
  tabOrder.set(names);
  writeStored(KEY, JSON.stringify(names));
}
