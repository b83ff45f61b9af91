/** Whether the panel beside the chat is open, which this browser keeps, and whether it has the place of the chat. */
import { createStore } from "../../ui/stores/store.ts";
import { readStored, writeStored } from "../../ui/stores/stored.ts";

const KEY = "parley.panel";

export const panelOpen = createStore(readStored(KEY) === "open");

/** Whether the panel has the place of the chat too. */
export const panelExpanded = createStore(false);

export function showPanel(isOpen: boolean): void {
  panelOpen.set(isOpen);
  if (!isOpen) panelExpanded.set(false);
  writeStored(KEY, isOpen ? "open" : null);
}

export function expandPanel(isExpanded: boolean): void {
  if (isExpanded) showPanel(true);
  panelExpanded.set(isExpanded);
}
