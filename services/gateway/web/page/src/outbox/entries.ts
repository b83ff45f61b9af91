/** Messages on their way as they are stored: each under its own key, since all tabs share the storage. */
import type { InputPart, ReasoningEffort } from "../api/types.ts";

export interface Outgoing {
  key: string;
  /** When it was written; messages are sent in this order. */
  writtenAtMs: number;
  chatId: string;
  content: InputPart[];
  busy: "queue" | "interrupt";
  modelId: string | null;
  effort: ReasoningEffort | null;
  /** The MCP servers from this message on; null leaves them. */
  mcpServerIds: readonly string[] | null;
  /** Why the server refused it; a refused message stays until it is sent again or discarded. */
  refusal?: string;
}

export const PREFIX = "parley.outbox.";

export function entryOf(key: string): string {
  return PREFIX + key;
}

/** Put a message where it belongs; a known one is replaced. */
export function withMessage(messages: readonly Outgoing[], message: Outgoing): readonly Outgoing[] {
  return [...withoutMessage(messages, message.key), message].toSorted(
    (a, b) => a.writtenAtMs - b.writtenAtMs || (a.key < b.key ? -1 : 1),
  );
}

export function withoutMessage(messages: readonly Outgoing[], key: string): readonly Outgoing[] {
  return messages.filter((each) => each.key !== key);
}

/** Apply an entry of the storage as it is by now; null if it was removed. */
export function withEntry(messages: readonly Outgoing[], entry: string, value: string | null): readonly Outgoing[] {
  const key = entry.slice(PREFIX.length);
  if (value === null) return withoutMessage(messages, key);
  try {
    const found = JSON.parse(value) as Outgoing | null;
    return found?.key === key ? withMessage(messages, found) : messages;
  } catch {
    return messages;
  }
}
