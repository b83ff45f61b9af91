// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { Action } from "../api/types.ts";
import { ActionCard } from "../cards/actions/card.tsx";
import { newCanvas } from "../testing/canvas.tsx";
import { serverIdOf } from "./selection.ts";

/** The channel of a browser, without its delay. */
class Channel {
  static open = new Set<Channel>();
  onmessage: ((event: { data: unknown }) => void) | null = null;
  constructor() {
    Channel.open.add(this);
  }
  close(): void {
    Channel.open.delete(this);
  }
}

const canvas = newCanvas();
let sent: { body: unknown; key: string | null }[];

beforeEach(() => {
  sent = [];
  queryClient.setQueryData(["mcp", "servers"], { items: [{ slug: "guarded", display_name: "Guarded" }], next_cursor: null });
  vi.stubGlobal("BroadcastChannel", Channel);
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push({ body: await request.json(), key: request.headers.get("Idempotency-Key") });
    return Response.json({}, { status: 202 });
  });
});

async function show(): Promise<void> {
  const args = { message: "the login\u202e ended", url: "https://parley.example/mcp/login/01900000-0000" };
  const action = { id: "a1", chat_id: "c1", kind: "login", tool_name: "guarded__whoami", args } as unknown as Action;
  await canvas.show(<ActionCard action={action} />);
}

async function press(words: string): Promise<void> {
  await act(async () => [...canvas.element.querySelectorAll("button")].find((each) => each.textContent === words)!.click());
}

async function hear(told: object): Promise<void> {
  await act(async () => Channel.open.forEach((each) => each.onmessage?.({ data: { type: "parley.mcp.login", ...told } })));
}

test("the call goes on once its own server is connected, and is answered once by several tabs", async () => {
  const open = vi.fn(() => ({}));
  vi.stubGlobal("open", open);
  await show();
  expect(canvas.element.querySelector(".action-head")?.textContent).toBe("The server Guarded needs your login again");
  expect(canvas.element.querySelector(".mcp-text")?.textContent).toBe("the loginU+202E ended");
  await press("Connect");
  expect(open).toHaveBeenCalledWith("/mcp/login/01900000-0000", expect.anything(), expect.stringContaining("popup"));
  await hear({ server_id: "another", outcome: "connected" });
  await hear({ server_id: "01900000-0000", outcome: "failed" });
  expect(sent).toEqual([]);
  await hear({ server_id: "01900000-0000", outcome: "connected" });
  await vi.waitFor(() => expect(sent).toEqual([{ body: { decision: "accept" }, key: "connected-a1" }]));
});

test("a blocked window is a link, and the channel is closed with the card", async () => {
  vi.stubGlobal("open", () => null);
  await show();
  await press("Connect");
  expect(canvas.element.querySelector("[role=alert] a")?.getAttribute("href")).toBe("/mcp/login/01900000-0000");
  await canvas.show(null);
  expect(Channel.open.size).toBe(0);
});

test("a login can be declined", async () => {
  await show();
  await press("Decline");
  await vi.waitFor(() => expect(sent.map((each) => each.body)).toEqual([{ decision: "refuse" }]));
});

test("the server is that of an address of logins only", () => {
  expect(serverIdOf("https://parley.example/mcp/login/abc-1")).toBe("abc-1");
  expect(["https://x/other/abc", "https://x/mcp/login/a/b", "javascript:0", ""].map(serverIdOf)).toEqual(["", "", "", ""]);
});
