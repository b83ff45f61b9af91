/** Whether the sidebar is open: beside the chat on wide screens, in place of it on a phone. */
import { createStore } from "../ui/stores/store.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

const KEY = "parley.side";

export const sideClosed = createStore(readStored(KEY) === "closed");
/** On a phone: whether the sidebar is shown in place of the screen. */
export const sideShown = createStore(false);

export function toggleSide(): void {
  sideClosed.update((was) => !was);
  writeStored(KEY, sideClosed.get() ? "closed" : null);
  sideShown.update((was) => !was);
}
