/** The keys of the page; `?` lists them. */
import { useEffect } from "react";
import { useLocation } from "wouter";
import type { SendKey } from "../composer/send-key.ts";
import { expandPanel, panelExpanded, panelOpen, showPanel } from "../panel/tabs/panel-state.ts";
import { beginsChat, isMac } from "./new-chat-key.ts";
import { toggleSide } from "./side-state.ts";

/** A key, or several that are told together, and what it does. */
type KeyWords = readonly [keys: string, meaning: string];

export interface KeyGroup {
  place: string;
  keys: readonly KeyWords[];
}

const SENDING: Record<SendKey, readonly KeyWords[]> = {
  enter: [
    ["Enter", "Send"],
    ["Shift Enter", "New line"],
    ["Ctrl Enter", "Send at once, interrupting the turn"],
  ],
  "ctrl-enter": [
    ["Ctrl Enter", "Send"],
    ["Enter", "New line"],
    ["Ctrl Shift Enter", "Send at once, interrupting the turn"],
  ],
};

/** Every key with what it does, by where it does it, as the person has chosen them. */
export const keysOf = (sends: SendKey): readonly KeyGroup[] => [
  {
    place: "Everywhere",
    keys: [
      ["?", "Show the keys"],
      ["N", "New chat"],
      // On Macs it writes an accent.
      ...(isMac() ? [] : [["Alt N", "New chat, also while you write"] as const]),
      ["Ctrl K", "Find chats, messages, files and commands"],
      ["[ and ]", "Previous and next chat"],
      ["B", "Show or hide the list of chats"],
      ["W", "What waits for me"],
    ],
  },
  {
    place: "In a chat",
    keys: [
      ["G", "Go to the composer"],
      ["K and J", "Previous and next message of yours"],
      ["P", "Show or hide the panel beside it"],
      ["Ctrl Shift E", "Give the panel all the place, or take it back"],
      ["Esc", "Close what is offered, leave an edit, else interrupt the turn"],
    ],
  },
  {
    place: "In the composer",
    keys: [
      ...SENDING[sends],
      ["Ctrl Shift V", "Paste a long text as text, not as a file"],
      ["Up", "Earlier prompts (while it is empty)"],
      ["/", "Commands, skills and prompts"],
      ["@", "Resources of MCP servers"],
    ],
  },
  {
    place: "On what can be moved",
    keys: [
      ["Alt Up and Down", "Move a queued message, or a key of a provider"],
      ["Alt Left and Right", "Move a tab of the panel"],
      ["Left and Right", "Make the list of chats or the panel wider or narrower, at its edge"],
    ],
  },
];

/** Events that tell parts of the page to do something. */
export const FIND = "parley:find";
export const KEYS_SHOWN = "parley:keys";
export const STEP = "parley:step";
export const COMPOSE = "parley:compose";
export const JUMP = "parley:jump";

/** Whether a chat is shown, which has a panel beside it. */
function isChat(): boolean {
  return location.pathname.startsWith("/chats/");
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && Boolean(target.closest("input, textarea, select, [contenteditable]"));
}

export function useShellKeys(showKeys: () => void): void {
  const [, navigate] = useLocation();
  useEffect(() => {
    function onKey(event: KeyboardEvent): void {
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const isCommand = event.ctrlKey || event.metaKey;
      if (isCommand && event.key.toLowerCase() === "k") {
        event.preventDefault();
        dispatchEvent(new Event(FIND));
        return;
      }
      if (isCommand && event.shiftKey && event.key.toLowerCase() === "e" && isChat()) {
        event.preventDefault();
        expandPanel(!panelExpanded.get());
        return;
      }
      if (beginsChat(event, isMac())) {
        event.preventDefault();
        navigate("/");
        return;
      }
      if (isCommand || event.altKey || isTyping(event.target)) return;
      const commands: Record<string, () => void> = {
        "?": showKeys,
        n: () => navigate("/"),
        w: () => navigate("/waiting"),
        b: toggleSide,
        p: () => isChat() && showPanel(!panelOpen.get()),
        g: () => dispatchEvent(new Event(COMPOSE)),
        k: () => dispatchEvent(new CustomEvent(JUMP, { detail: -1 })),
        j: () => dispatchEvent(new CustomEvent(JUMP, { detail: 1 })),
        "[": () => dispatchEvent(new CustomEvent(STEP, { detail: -1 })),
        "]": () => dispatchEvent(new CustomEvent(STEP, { detail: 1 })),
      };
      const command = commands[event.key];
      if (!command) return;
      event.preventDefault();
      command();
    }
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate, showKeys]);
}
