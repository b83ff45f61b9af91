// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import type { Chat } from "../api/types.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import { RenameDialog } from "./dialogs.tsx";

const CHAT = { id: "c1", title: "Tides", parent_chat_id: null, status: "waiting", etag: "1-a", versions: { snapshot: 1 } } as unknown as Chat;
const CHANGED = { type: "about:blank", title: "Changed", status: 412, detail: "Somebody changed it meanwhile.", instance: "", code: "VERSION_CONFLICT", retryable: false };

const canvas = newCanvas();

test("a title that somebody else gave meanwhile is shown, and replaced only by another press", async () => {
  const titles: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method === "GET") return Response.json({ ...CHAT, title: "Stars", etag: "2-b" });
    if (request.headers.get("If-Match") !== '"2-b"') return Response.json(CHANGED, { status: 412 });
    titles.push(await request.json());
    return Response.json({ ...CHAT, title: "Tides", etag: "3-c" });
  });
  let closed = 0;
  await canvas.show(<RenameDialog chat={CHAT} onClose={() => void (closed += 1)} />);
  await canvas.press(button(canvas.element, "Rename")!);
  await settled(() => expect(canvas.element.querySelector("[role=alert]")?.textContent).toContain("“Stars”"));
  expect([titles, closed]).toEqual([[], 0]);
  await canvas.press(button(canvas.element, "Rename")!);
  await settled(() => expect(closed).toBe(1));
  expect(titles).toEqual([{ title: "Tides" }]);
});
