/** Which key sends a message, kept in this browser. */
import { createStore } from "../ui/stores/store.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

export type SendKey = "enter" | "ctrl-enter";

const KEY = "parley.send-key";

export const sendKey = createStore<SendKey>(readStored(KEY) === "ctrl-enter" ? "ctrl-enter" : "enter");

export function setSendKey(next: SendKey): void {
  sendKey.set(next);
  writeStored(KEY, next === "enter" ? null : next);
}

interface Pressed {
  isShift: boolean;
  /** Whether Ctrl or Cmd is held. */
  isModified: boolean;
  /** Whether there is no other keyboard than that of the screen. */
  isPhone: boolean;
}

/** What Enter does: it sends, sends and interrupts the turn, or begins a line. */
export function meaningOfEnter(chosen: SendKey, { isShift, isModified, isPhone }: Pressed): "send" | "interrupt" | "line" {
  if (chosen === "ctrl-enter") return isModified ? (isShift ? "interrupt" : "send") : "line";
  if (isShift) return "line";
  if (isModified) return "interrupt";
  return isPhone ? "line" : "send";
}
