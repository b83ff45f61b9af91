/**
 * Messages on their way. Each has a key that the server takes once, so that it is sent again until
 * an answer came: after a reload, or when the connection is back, and also by two tabs at once.
 */
import { answered, api } from "../api/client.ts";
import { Problem, Unreachable, wordsOf } from "../api/problem.ts";
import { randomKey } from "../api/transport.ts";
import type { InputPart, Message, ReasoningEffort } from "../api/types.ts";
import { createStore } from "../ui/store.ts";
import { readStored, writeStored } from "../ui/stored.ts";

export interface Outgoing {
  key: string;
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

const KEY = "parley.outbox";
const RETRY_MS = 5_000;
/** Refusals that end: after a sign-in, or after a while. */
const PASSING: readonly number[] = [401, 429, 503];

function stored(): readonly Outgoing[] {
  try {
    const found: unknown = JSON.parse(readStored(KEY) ?? "[]");
    return Array.isArray(found) ? (found as Outgoing[]) : [];
  } catch {
    return [];
  }
}

/** What the server has not taken yet. */
export const outbox = createStore<readonly Outgoing[]>(stored());

function put(next: readonly Outgoing[]): void {
  outbox.set(next);
  writeStored(KEY, next.length ? JSON.stringify(next) : null);
}

export function discard(key: string): void {
  put(outbox.get().filter((each) => each.key !== key));
}

/** What became of a message; it waits if nobody could be reached. */
export type Sent = { kind: "stored"; message: Message | null; isQueued: boolean } | { kind: "waits" };

/** Send a message; it stays in the outbox until the server answered. */
export async function post(message: Omit<Outgoing, "key">): Promise<Sent> {
  const outgoing = { ...message, key: randomKey() };
  put([...outbox.get(), outgoing]);
  try {
    return await deliver(outgoing);
  } catch (error) {
    // The composer has what was written again.
    discard(outgoing.key);
    throw error;
  }
}

/** Send a refused message again. */
export function sendAgain(key: string): void {
  put(outbox.get().map((each) => (each.key === key ? without(each) : each)));
  void flush();
}

function without({ refusal: _, ...outgoing }: Outgoing): Outgoing {
  return outgoing;
}

async function deliver(outgoing: Outgoing): Promise<Sent> {
  try {
    const answer = await answered(
      api.POST("/api/v1/chats/{chat_id}/messages", {
        params: {
          path: { chat_id: outgoing.chatId },
          header: { "Idempotency-Key": outgoing.key },
        },
        body: {
          content: outgoing.content,
          busy_behavior: outgoing.busy,
          ...(outgoing.modelId ? { model_id: outgoing.modelId } : {}),
          ...(outgoing.mcpServerIds ? { mcp_server_ids: [...outgoing.mcpServerIds] } : {}),
          ...(outgoing.effort ? { reasoning_effort: outgoing.effort } : {}),
        },
      }),
    );
    discard(outgoing.key);
    return { kind: "stored", message: answer.message, isQueued: answer.queued };
  } catch (error) {
    if (error instanceof Unreachable) return { kind: "waits" };
    throw error;
  }
}

let isFlushing = false;

/** Send what waits, in order. */
export async function flush(): Promise<void> {
  if (isFlushing) return;
  isFlushing = true;
  try {
    for (const outgoing of outbox.get().filter((each) => each.refusal === undefined)) {
      try {
        if ((await deliver(outgoing)).kind === "waits") break;
      } catch (error) {
        if (error instanceof Problem && PASSING.includes(error.status)) break;
        const refusal = wordsOf(error);
        put(outbox.get().map((each) => (each.key === outgoing.key ? { ...each, refusal } : each)));
      }
    }
  } finally {
    isFlushing = false;
  }
}

if (typeof addEventListener === "function" && typeof document !== "undefined") {
  addEventListener("online", () => void flush());
  setInterval(() => {
    if (outbox.get().length && navigator.onLine) void flush();
  }, RETRY_MS);
  if (outbox.get().length) void flush();
}
