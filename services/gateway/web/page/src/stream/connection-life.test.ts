// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Arrived, connect, type Connection, type Link } from "./connection.ts";

interface Told {
  type: string;
}

/** One stream as the server has it. */
interface Stream {
  address: string;
  say: (text: string) => void;
  end: () => void;
  isAborted: () => boolean;
}

let streams: Stream[];
let links: Link[];
let events: Arrived<Told>[];
let connection: Connection;

/** Be a server whose streams stay open until they are ended, or that refuses with a status. */
function serveStreams(statuses: number[] = []): void {
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const status = statuses.shift() ?? 200;
    const { pathname, search } = new URL(request.url);
    let controller: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (given) => void (controller = given) });
    request.signal.addEventListener("abort", () => controller.error(request.signal.reason));
    streams.push({
      address: pathname + search,
      say: (text) => controller.enqueue(new TextEncoder().encode(text)),
      end: () => controller.close(),
      isAborted: () => request.signal.aborted,
    });
    return status === 200 ? new Response(body) : new Response("", { status });
  });
}

beforeEach(() => {
  [streams, links, events] = [[], [], []];
  vi.useFakeTimers();
});

afterEach(() => {
  connection.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function open(): void {
  connection = connect<Told>({
    address: (cursor) => `/events${cursor ? `?cursor=${cursor}` : ""}`,
    cursor: null,
    onEvents: (arrived) => events.push(...arrived),
    onLink: (link) => links.push(link),
  });
}

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

test("a broken stream continues after its last event", async () => {
  serveStreams();
  open();
  await pass(0);
  streams[0]!.say('id: 7\ndata: {"type": "status"}\n\n');
  await pass(0);
  streams[0]!.end();
  await pass(1_000);
  expect(streams.map((each) => each.address)).toEqual(["/events", "/events?cursor=7"]);
  expect([events.map((each) => each.event.type), links]).toEqual([["status"], ["connecting", "open", "waiting", "connecting", "open"]]);
});

test("45 seconds of silence are the end of a stream, and a comment of the server is no silence", async () => {
  serveStreams();
  open();
  await pass(44_000);
  streams[0]!.say(": still here\n\n");
  await pass(44_000);
  expect([streams.length, streams[0]!.isAborted()]).toEqual([1, false]);
  await pass(2_000);
  expect(streams[0]!.isAborted()).toBe(true);
  expect(streams.map((each) => each.address)).toEqual(["/events", "/events"]);
});

test("after a resync the stream begins anew", async () => {
  serveStreams();
  open();
  await pass(0);
  streams[0]!.say('id: 7\ndata: {"type": "status"}\n\ndata: {"type": "resync"}\n\n');
  await pass(0);
  streams[0]!.end();
  await pass(1_000);
  expect(streams[1]?.address).toBe("/events");
});

test("a server that fails is asked again, and one that refuses is not", async () => {
  serveStreams([500, 404]);
  open();
  await pass(120_000);
  expect([streams.length, links.at(-1)]).toEqual([2, "refused"]);
});

test("a connection that is back is used at once, and a closed stream is not opened again", async () => {
  serveStreams(Array.from({ length: 8 }, () => 500));
  open();
  await pass(20_000);
  const before = streams.length;
  connection.hurry();
  await pass(0);
  expect(streams.length).toBe(before + 1);
  connection.close();
  await pass(120_000);
  expect([streams.length, links.at(-1)]).toEqual([before + 1, "closed"]);
});
