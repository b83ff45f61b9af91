/** The tabs of the panel by chat: which is open and which are put away, kept in this browser. */
import { createStore } from "../../ui/stores/store.ts";
import { readStored, writeStored } from "../../ui/stores/stored.ts";

export interface ChatTabs {
  chatId: string;
  /** The tab that is open, by its name; empty for the first one. */
  open: string;
  /** The tabs that are put away, by their names. */
  hidden: readonly string[];
}

const KEY = "parley.panel.tabs";
/** Of more chats than these those are forgotten whose tabs were changed longest ago. */
export const CHATS_MAX = 100;

/** Return the tabs of a chat; one that is new begins with the tab that was opened last anywhere. */
export function tabsOf(all: readonly ChatTabs[], chatId: string): ChatTabs {
  return all.find((each) => each.chatId === chatId) ?? { chatId, open: all.at(-1)?.open ?? "", hidden: [] };
}

/** Put the tabs of a chat last, as those that were changed last. */
export function withTabs(all: readonly ChatTabs[], changed: ChatTabs): readonly ChatTabs[] {
  return [...all.filter((each) => each.chatId !== changed.chatId), changed].slice(-CHATS_MAX);
}

/** Read what is stored; what is no list of tabs is nothing. */
export function parsedTabs(text: string | null): readonly ChatTabs[] {
  try {
    const found = JSON.parse(text ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter(isTabs) : [];
  } catch {
    return [];
  }
}

function isTabs(value: unknown): value is ChatTabs {
  const { chatId, open, hidden } = (value ?? {}) as Partial<ChatTabs>;
  return typeof chatId === "string" && typeof open === "string" && Array.isArray(hidden);
}

export const panelTabs = createStore<readonly ChatTabs[]>(parsedTabs(readStored(KEY)));

export function changeTabs(changed: ChatTabs): void {
  // Another tab of the browser may have changed those of other chats.
  const next = withTabs(parsedTabs(readStored(KEY) ?? JSON.stringify(panelTabs.get())), changed);
  panelTabs.set(next);
  writeStored(KEY, JSON.stringify(next));
}
