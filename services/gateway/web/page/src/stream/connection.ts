/**
 * One stream of events that is kept open: it reconnects after its last event, with growing pauses,
 * and counts as dead after a silence that comments of the server would have broken.
 */
import { Problem, problemOf } from "../api/problem.ts";
import { send } from "../api/transport.ts";
import { frameParser } from "./sse.ts";

const SILENCE_MS_MAX = 45_000;
const PAUSE_MS_MAX = 30_000;

export interface Arrived<E> {
  event: E;
  cursor: string | null;
}

export type Link = "connecting" | "open" | "waiting" | "refused" | "closed";

export interface ConnectionOptions<E> {
  /** The address to connect to after a cursor; null for the beginning. */
  address: (cursor: string | null) => string;
  cursor: string | null;
  /** Take the events of one read, all at once. */
  onEvents: (events: Arrived<E>[]) => void;
  onLink: (link: Link, problem: Problem | null) => void;
}

export interface Connection {
  close: () => void;
  /** Connect now in place of waiting. */
  hurry: () => void;
  /** Where the stream goes on; null for its beginning. */
  setCursor: (cursor: string | null) => void;
}

/** Open a stream and keep it open. */
export function connect<E extends { type: string }>(options: ConnectionOptions<E>): Connection {
  let cursor = options.cursor;
  let failures = 0;
  let isClosed = false;
  let current: AbortController | null = null;
  let wake = (): void => {};

  function take(events: Arrived<E>[]): void {
    for (const { event, cursor: at } of events) {
      if (event.type === "resync") cursor = null;
      else if (at) cursor = at;
    }
    if (events.length) options.onEvents(events);
  }

  async function once(): Promise<void> {
    current = new AbortController();
    const aborted = current.signal;
    let silence = setTimeout(() => current?.abort(), SILENCE_MS_MAX);
    try {
      const request = new Request(new URL(options.address(cursor), location.origin), {
        headers: { Accept: "text/event-stream" },
        signal: aborted,
      });
      const response = await send(request);
      if (!response.ok || !response.body) throw await problemOf(response);
      options.onLink("open", null);
      const parse = frameParser();
      for await (const piece of pieces(response.body)) {
        clearTimeout(silence);
        silence = setTimeout(() => current?.abort(), SILENCE_MS_MAX);
        failures = 0;
        take(parse(piece).map(({ id, data }) => ({ event: JSON.parse(data) as E, cursor: id || null })));
      }
    } finally {
      clearTimeout(silence);
    }
  }

  async function run(): Promise<void> {
    while (!isClosed) {
      options.onLink("connecting", null);
      try {
        await once();
      } catch (error) {
        if (isClosed) break;
        if (error instanceof Problem && error.status < 500 && error.status !== 429) {
          options.onLink("refused", error);
          return;
        }
      }
      if (isClosed) break;
      options.onLink("waiting", null);
      failures += 1;
      await pause(pauseMs(failures));
    }
    options.onLink("closed", null);
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  void run();
  return {
    close: () => {
      isClosed = true;
      current?.abort();
      wake();
    },
    hurry: () => wake(),
    setCursor: (next) => {
      cursor = next;
    },
  };
}

/** Return how long to wait after so many failures in a row. */
export function pauseMs(failures: number, random: () => number = Math.random): number {
  return Math.min(PAUSE_MS_MAX, 500 * 2 ** (failures - 1)) * (0.5 + random() / 2);
}

async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
