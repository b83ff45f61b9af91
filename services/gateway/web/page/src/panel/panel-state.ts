/** Whether the panel beside the chat is open, kept in this browser. */
import { createStore } from "../ui/store.ts";
import { readStored, writeStored } from "../ui/stored.ts";

const KEY = "parley.panel";

export const panelOpen = createStore(readStored(KEY) === "open");

export function showPanel(isOpen: boolean): void {
  panelOpen.set(isOpen);
  writeStored(KEY, isOpen ? "open" : null);
}
