// @vitest-environment happy-dom
import { act, useSyncExternalStore } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { Queue } from "../chat/queue.tsx";
import { outbox, post } from "../outbox/outbox.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { PENDING } from "../testing/server.ts";
import { useChat } from "./chat-store.ts";

const canvas = newCanvas();
const TEXT = "hello there";
const CONTENT = [{ type: "text" as const, text: TEXT }];

afterEach(() => {
  outbox.set([]);
  localStorage.clear();
});

function Chat() {
  const [, view] = useChat("c1");
  const waiting = useSyncExternalStore(outbox.subscribe, outbox.get);
  return (
    <>
      {view.isLoaded && "loaded"}
      {view.chat.messages.map((each) => <p key={each.id}>{TEXT}</p>)}
      <Queue chatId="c1" queue={view.chat.queue} outgoing={waiting} />
    </>
  );
}

/** Serve a chat without messages, that takes one with an answer. */
function serveChat(answer: object): void {
  vi.stubGlobal("fetch", async ({ method, url }: Request) => {
    const { pathname } = new URL(url);
    if (method === "POST") return Response.json(answer, { status: 201 });
    if (pathname.endsWith("/events")) return PENDING;
    if (pathname.endsWith("/messages")) return Response.json({ messages: [], queued_messages: [], has_more: false, has_newer: false, cursor: "c" });
    return Response.json({ id: "c1", status: "waiting", place_in_line: 0, last_error: null, retry: null, required_action: null });
  });
}

test.each([
  ["history", { message: { id: 1, role: "user", content: CONTENT }, queued_message: null, queued: false }],
  ["queue", { message: null, queued_message: { id: "q1", content: CONTENT }, queued: true }],
])("a message that is not stored yet is replaced by that of the %s in one update", async (_place, answer) => {
  serveChat(answer);
  await canvas.show(<Chat />);
  await settled(() => expect(canvas.element.textContent).toContain("loaded"));
  const shown = new Set<string>();
  const look = (): void => {
    const text = canvas.element.textContent ?? "";
    shown.add(`${text.split(TEXT).length - 1} times, ${text.includes("not stored yet") ? "not stored yet" : "stored"}`);
  };
  const observer = new MutationObserver(look);
  observer.observe(canvas.element, { childList: true, subtree: true, characterData: true });
  await act(async () => void (await post({ chatId: "c1", content: CONTENT, busy: "queue", modelId: null, effort: null, mcpServerIds: null })));
  await settled(() => expect(canvas.element.textContent).not.toContain("not stored yet"));
  observer.disconnect();
  look();
  expect([...shown].filter((each) => each.startsWith("0") || each.startsWith("2"))).toEqual([]);
  expect(shown).toContain("1 times, stored");
});
