// @vitest-environment happy-dom
import { act } from "react";
import { expect, test, vi } from "vitest";
import { queryClient } from "../../api/queries.ts";
import type { Chat } from "../../api/types.ts";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { SwitchWorkspace } from "./switch-workspace.tsx";

const CHAT = { id: "c1", title: "Tides", owner_id: "ann", workspace_id: null, parent_chat_id: null, archived: false, status: "waiting", etag: "1-a", versions: { snapshot: 1 } } as unknown as Chat;
const NOW = { ...CHAT, workspace_id: "w2", etag: "2-b" };
const WORKSPACES = [{ id: "w1", name: "Harbour", state: "running" }, { id: "w2", name: "Lighthouse", state: "running" }];
const CHANGED = { type: "about:blank", title: "Changed", status: 412, detail: "Somebody changed it meanwhile.", instance: "", code: "VERSION_CONFLICT", retryable: false };

const canvas = newCanvas();

test("a workspace that was chosen elsewhere while the dialog is open is told, and replaced only by another press", async () => {
  const stored: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname !== "/api/v1/chats/c1") return Response.json({ items: WORKSPACES });
    if (request.method === "GET") return Response.json(NOW);
    if (request.headers.get("If-Match") !== '"2-b"') return Response.json(CHANGED, { status: 412 });
    stored.push(await request.json());
    return Response.json({ ...NOW, workspace_id: "w1", etag: "3-c" });
  });
  queryClient.setQueryData(["me"], { id: "ann" });
  await canvas.show(<SwitchWorkspace chat={CHAT} name={undefined} />);
  await canvas.press(button(canvas.element, "Another workspace…")!);
  await settled(() => expect(canvas.element.querySelectorAll("option")).toHaveLength(3));
  const select = canvas.element.querySelector("select")!;
  await act(async () => {
    select.value = "w1";
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  // The feed tells of the other choice.
  await canvas.show(<SwitchWorkspace chat={NOW} name="Lighthouse" />);
  await canvas.press(button(canvas.element, "Switch")!);
  await settled(() => expect(canvas.element.querySelector("[role=alert]")?.textContent).toContain("“Lighthouse”"));
  expect(stored).toEqual([]);
  await canvas.press(button(canvas.element, "Switch")!);
  await settled(() => expect(canvas.element.querySelector("select")).toBeNull());
  expect(stored).toEqual([{ workspace_id: "w1" }]);
});
