/** The keys of the page; `?` lists them. */
import { useEffect } from "react";
import { useLocation } from "wouter";
import type { SendKey } from "../composer/send-key.ts";
import { expandPanel, panelExpanded, panelOpen, showPanel } from "../panel/tabs/panel-state.ts";
import { beginsChat, isMac } from "./new-chat-key.ts";
import { toggleSide } from "./side-state.ts";

const SENDING: Record<SendKey, readonly (readonly [string, string])[]> = {
  enter: [
    ["Enter", "Send (in the composer)"],
    ["Shift Enter", "New line"],
    ["Ctrl Enter", "Send at once, interrupting the turn"],
  ],
  "ctrl-enter": [
    ["Ctrl Enter", "Send (in the composer)"],
    ["Enter", "New line"],
    ["Ctrl Shift Enter", "Send at once, interrupting the turn"],
  ],
};

/** Every key with what it does, as the person has chosen them. */
export const keysOf = (sends: SendKey): readonly (readonly [string, string])[] => [
  ["?", "Show the keys"],
  ["N", "New chat"],
  // On Macs it writes an accent.
  ...(isMac() ? [] : [["Alt N", "New chat, also while you write"] as const]),
  ["Ctrl K", "Find chats, messages, files and commands"],
  ["[ and ]", "Previous and next chat"],
  ["K and J", "Previous and next message of yours"],
  ["B", "Show or hide the list of chats"],
  ["P", "Show or hide the panel beside a chat"],
  ["Ctrl Shift E", "Give the panel all the place, or take it back"],
  ["W", "What waits for me"],
  ["G", "Go to the composer"],
  ...SENDING[sends],
  ["Up", "Earlier prompts (in an empty composer)"],
  ["/", "Commands, skills and prompts (in the composer)"],
  ["Esc", "Close what is offered, leave an edit, else interrupt the turn"],
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
