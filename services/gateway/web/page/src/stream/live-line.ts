/** The last words of the answer that comes in the chat that is shown, for its row in the list. */
import { createStore } from "../ui/stores/store.ts";
import type { Tail } from "./chat-state.ts";

const CHARACTERS = 90;

export const liveLine = createStore<{ chatId: string; line: string } | null>(null);

/** Return the last words of a preview, in one line; empty if it has no text. */
export function lastWords(tail: Tail | null): string {
  const part = tail?.parts.findLast(({ part }) => part.type === "text")?.part;
  if (part?.type !== "text") return "";
  const words = part.text.slice(-4 * CHARACTERS).trim().replaceAll(/\s+/g, " ");
  return words.length > CHARACTERS ? `…${words.slice(-CHARACTERS)}` : words;
}
