// @vitest-environment happy-dom
import { act, useSyncExternalStore } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../api/types.ts";
import { EMPTY, withOlder } from "../stream/chat-state.ts";
import { ChatStore } from "../stream/chat-store.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { serveNothingYet } from "../testing/server.ts";
import { Timeline } from "./timeline.tsx";

const PAGE = 50;

const canvas = newCanvas();
/** How often the words of each message of the person were read, by its id: once for each time it is rendered. */
let rendered: Map<number, number>;
let store: ChatStore;

beforeEach(() => {
  // A chat without height reads on by itself.
  serveNothingYet();
  rendered = new Map();
  store = new ChatStore("c1");
});

/** Messages of turns with one answer each: the odd ids are those of the person. */
function page(from: number): Message[] {
  return Array.from({ length: PAGE }, (_, place) => {
    const id = from + place;
    const content = [{ type: "text" as const, text: `words ${id}` }];
    if (id % 2 === 0) return { id, role: "assistant", content, finish_reason: "stop" } as unknown as Message;
    const message = { id, role: "user" };
    Object.defineProperty(message, "content", {
      enumerable: true,
      get: () => {
        rendered.set(id, (rendered.get(id) ?? 0) + 1);
        return content;
      },
    });
    return message as unknown as Message;
  });
}

function Shown() {
  const view = useSyncExternalStore(store.view.subscribe, store.view.get);
  return <Timeline store={store} view={view} userId="u1" isMine onEdit={nothing} onRevert={nothing} onAgain={async () => {}} />;
}

function nothing(): void {}

/** Let several frames pass, after which groups are still. */
async function frames(): Promise<void> {
  await act(async () => {
    for (let left = 4; left > 0; left -= 1) await new Promise((done) => requestAnimationFrame(done));
  });
}

const groups = (): Element[] => [...canvas.element.querySelectorAll(".timeline-group")];

test("a page of older messages is rendered alone, and the place of few elements is asked for", async () => {
  store.view.set({ ...store.view.get(), isLoaded: true, chat: { ...EMPTY, messages: page(201), hasOlder: true, status: "waiting" } });
  await canvas.show(<Shown />);
  const before = [...canvas.element.querySelectorAll("article")];
  for (const from of [151, 101, 51, 1]) {
    rendered.clear();
    const asked = vi.spyOn(Element.prototype, "getBoundingClientRect");
    const older = page(from);
    await act(async () => store.view.update((was) => ({ ...was, chat: withOlder(was.chat, older, from > 1) })));
    const places = asked.mock.calls.length;
    asked.mockRestore();
    await frames();
    expect(new Set([...rendered.keys()])).toEqual(new Set(older.filter(({ role }) => role === "user").map(({ id }) => id)));
    // Each group once, the messages of one of them, and the one that is held before and after.
    expect(places).toBeLessThanOrEqual(groups().length + PAGE + 3);
  }
  expect(canvas.element.querySelectorAll("article")).toHaveLength(5 * PAGE);
  expect([...canvas.element.querySelectorAll("article")].slice(-PAGE)).toEqual(before);
});

test("the end stays shown when all messages are replaced, unless something else is read", async () => {
  const shown = (first: number) => store.view.set({ ...store.view.get(), isLoaded: true, chat: { ...EMPTY, messages: page(first), status: "waiting" } });
  shown(51);
  await canvas.show(<Shown />);
  const scroller = canvas.element.querySelector<HTMLElement>(".timeline-scroll")!;
  let height = 1000;
  Object.defineProperty(scroller, "scrollHeight", { get: () => height });
  Object.defineProperty(scroller, "clientHeight", { get: () => 400 });
  const read = async (top: number): Promise<void> => {
    scroller.scrollTop = top;
    await act(async () => void scroller.dispatchEvent(new Event("scroll")));
  };
  await read(600);
  height = 3000;
  await act(async () => shown(1));
  expect(scroller.scrollTop).toBe(3000);
  await read(100);
  await act(async () => shown(101));
  expect(scroller.scrollTop).toBe(100);
});
