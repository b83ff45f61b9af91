/**
 * Messages on their way. Each has a key that the server takes once, so that it is sent again until
 * an answer came: after a reload, or when the connection is back, and also by two tabs at once.
 */
import { answered, api } from "../api/client.ts";
import { isAway, isOfProxy, Problem, wordsOf } from "../api/problem.ts";
import { randomKey } from "../api/transport.ts";
import type { Message, QueuedMessage } from "../api/types.ts";
import { createStore } from "../ui/stores/store.ts";
import { readStored, storedKeys, writeStored } from "../ui/stores/stored.ts";
import { entryOf, type Outgoing, PREFIX, withEntry, withMessage, withoutMessage } from "./entries.ts";

export type { Outgoing };

const RETRY_MS = 5_000;
/** How long a message of another tab is left to that tab, which sends it by itself. */
const LEFT_MS = 15_000;
/** Refusals that end: after a sign-in, or after a while. */
const PASSING: readonly number[] = [401, 429];

function stored(): readonly Outgoing[] {
  return storedKeys(PREFIX).reduce<readonly Outgoing[]>((found, each) => withEntry(found, each, readStored(each)), []);
}

/** What the server has not taken yet, of all tabs. */
export const outbox = createStore<readonly Outgoing[]>(stored());
/** The keys of messages that this tab sends right now, and of those that other tabs wrote. */
const underWay = new Set<string>();
const ofOthers = new Set<string>();

function put(outgoing: Outgoing): void {
  outbox.update((was) => withMessage(was, outgoing));
  writeStored(entryOf(outgoing.key), JSON.stringify(outgoing));
}

export function discard(key: string): void {
  ofOthers.delete(key);
  outbox.update((was) => withoutMessage(was, key));
  writeStored(entryOf(key), null);
}

/** Keep why a message was refused, unless another tab has removed it. */
function refuse(key: string, refusal: string): void {
  const found = outbox.get().find((each) => each.key === key);
  if (!found) return;
  const refused = { ...found, refusal };
  outbox.update((was) => withMessage(was, refused));
  if (readStored(entryOf(key)) !== null) writeStored(entryOf(key), JSON.stringify(refused));
}

/** What became of a message; it waits if the server could not be reached. */
export type Sent =
  | { kind: "stored"; isQueued: boolean }
  /** Whether messages of other chats would wait as well. */
  | { kind: "waits"; isForAll: boolean };

/** Tells of a message that the server has stored: in the history or in the queue, or as an answer in neither. */
type OnStored = (chatId: string, message: Message | null, queued: QueuedMessage | null) => void;

const told = new Set<OnStored>();

/**
 * Be told of messages that were stored, before they leave the outbox and in the same step: what is
 * shown of a message there is replaced by the message itself, whichever attempt was answered.
 */
export function onStored(tell: OnStored): () => void {
  told.add(tell);
  return () => void told.delete(tell);
}

/** Send a message; it stays in the outbox until the server answered. */
export async function post(message: Omit<Outgoing, "key" | "writtenAtMs">): Promise<Sent> {
  const last = outbox.get().at(-1)?.writtenAtMs ?? 0;
  const outgoing = { ...message, key: randomKey(), writtenAtMs: Math.max(Date.now(), last + 1) };
  put(outgoing);
  underWay.add(outgoing.key);
  try {
    return await deliver(outgoing);
  } catch (error) {
    // The composer has what was written again.
    discard(outgoing.key);
    throw error;
  } finally {
    underWay.delete(outgoing.key);
  }
}

/** Send a refused message again. */
export function sendAgain(key: string): void {
  const found = outbox.get().find((each) => each.key === key);
  if (!found) return;
  const { refusal: _, ...outgoing } = found;
  ofOthers.delete(key);
  put(outgoing);
  void flush();
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
    for (const tell of told) tell(outgoing.chatId, answer.message, answer.queued_message);
    discard(outgoing.key);
    return { kind: "stored", isQueued: answer.queued };
  } catch (error) {
    if (isAway(error)) return { kind: "waits", isForAll: !isOfProxy(error) };
    // An answer that was cut does not tell whether the message was stored; its key does, when it is sent again.
    if (!(error instanceof Problem)) return { kind: "waits", isForAll: false };
    throw error;
  }
}

function waitsForThisTab({ key, refusal, writtenAtMs }: Outgoing): boolean {
  const isLeft = ofOthers.has(key) && Date.now() - writtenAtMs < LEFT_MS;
  return refusal === undefined && !underWay.has(key) && !isLeft;
}

/** Take over what another tab wrote or removed. */
function onStorage({ key: entry, newValue }: StorageEvent): void {
  if (!entry?.startsWith(PREFIX)) return;
  const key = entry.slice(PREFIX.length);
  if (newValue === null) ofOthers.delete(key);
  else if (!outbox.get().some((each) => each.key === key)) ofOthers.add(key);
  outbox.update((was) => withEntry(was, entry, newValue));
}

let isFlushing = false;

/** Send what waits, in order. */
export async function flush(): Promise<void> {
  if (isFlushing) return;
  isFlushing = true;
  const waiting = new Set<string>();
  try {
    for (const outgoing of outbox.get().filter(waitsForThisTab)) {
      // Another tab may have sent it meanwhile.
      if (!outbox.get().some((each) => each.key === outgoing.key)) continue;
      // In order within a chat; others need not wait for a message that a proxy gives up each time.
      if (waiting.has(outgoing.chatId)) continue;
      try {
        const sent = await deliver(outgoing);
        if (sent.kind === "stored") continue;
        if (sent.isForAll) break;
        waiting.add(outgoing.chatId);
      } catch (error) {
        if (error instanceof Problem && PASSING.includes(error.status)) break;
        refuse(outgoing.key, wordsOf(error));
      }
    }
  } finally {
    isFlushing = false;
  }
}

if (typeof addEventListener === "function" && typeof document !== "undefined") {
  addEventListener("online", () => void flush());
  addEventListener("storage", onStorage);
  setInterval(() => {
    if (outbox.get().length && navigator.onLine) void flush();
  }, RETRY_MS);
  if (outbox.get().length) void flush();
}
