/** How far parts of answers are opened by themselves, kept in this browser. */
import { useSyncExternalStore } from "react";
import { createStore, type Store } from "../ui/stores/store.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

export type Shown = "thinking" | "output" | "changes";
export type DisplayMode = "auto" | "open" | "closed";

const MODES: readonly DisplayMode[] = ["auto", "open", "closed"];
const KINDS: readonly Shown[] = ["thinking", "output", "changes"];
const keyOf = (kind: Shown): string => `parley.display.${kind}`;

/** Return the mode that is stored; what is none is auto. */
export function modeOf(text: string | null): DisplayMode {
  return MODES.find((each) => each === text) ?? "auto";
}

const stores = Object.fromEntries(KINDS.map((kind) => [kind, createStore(modeOf(readStored(keyOf(kind))))])) as Record<Shown, Store<DisplayMode>>;

export function setDisplayMode(kind: Shown, mode: DisplayMode): void {
  stores[kind].set(mode);
  writeStored(keyOf(kind), mode === "auto" ? null : mode);
}

export function useDisplayMode(kind: Shown): DisplayMode {
  return useSyncExternalStore(stores[kind].subscribe, stores[kind].get);
}

/** Whether something is open as long as a person did not open or close it. */
export function opensBy(mode: DisplayMode, auto: boolean): boolean {
  return mode === "auto" ? auto : mode === "open";
}
