// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import type { Chat } from "../../api/types.ts";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { FallbackDialog } from "./dialog.tsx";

const CHAT = { id: "c1", title: "Tides", fallback_model_id: null, parent_chat_id: null, status: "waiting", etag: "1-a", versions: { snapshot: 1 } } as unknown as Chat;
const NOW = { ...CHAT, fallback_model_id: "none", etag: "2-b" };
const CHANGED = { type: "about:blank", title: "Changed", status: 412, detail: "Somebody changed it meanwhile.", instance: "", code: "VERSION_CONFLICT", retryable: false };

const canvas = newCanvas();

test("a fallback model that was chosen elsewhere while the dialog is open is told, and replaced only by another press", async () => {
  const stored: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname !== "/api/v1/chats/c1") return Response.json({ items: [] });
    if (request.method === "GET") return Response.json(NOW);
    if (request.headers.get("If-Match") !== '"2-b"') return Response.json(CHANGED, { status: 412 });
    stored.push(await request.json());
    return Response.json({ ...CHAT, etag: "3-c" });
  });
  let closed = 0;
  const show = (chat: Chat) => canvas.show(<FallbackDialog chat={chat} onClose={() => void (closed += 1)} />);
  await show(CHAT);
  // The feed tells of the other choice.
  await show(NOW);
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(canvas.element.querySelector("[role=alert]")?.textContent).toContain("“None: the turn waits and tries again”"));
  expect([stored, closed]).toEqual([[], 0]);
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(closed).toBe(1));
  expect(stored).toEqual([{ fallback_model_id: null }]);
});
