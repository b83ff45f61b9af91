// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { Chat, ChatStatus, Message } from "../api/types.ts";
import { panelOpen, showPanel } from "../panel/tabs/panel-state.ts";
import { panelTabs, tabsOf } from "../panel/tabs/panel-tabs.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import { ServersNotice } from "./servers-notice.tsx";
import { parsedPutOff, putOffServers, settledAt } from "./workspace/untrusted.ts";

const CHAT = { id: "c1", owner_id: "u1" } as unknown as Chat;
// Every second message calls a tool.
const messages = (count: number): Message[] =>
  Array.from({ length: count }, (_, place) => ({ id: place + 1, content: [{ type: place % 2 ? "tool-call" : "text" }] })) as unknown as Message[];
const server = (name: string, state: string, digest = "d1") => ({
  name, state, digest, command: "python3", arguments: [], environment: {}, tool_names: [], changed_since_trust: false, reason: null,
});

const canvas = newCanvas();
let servers: object[] = [];
let asked = 0;

beforeEach(() => {
  servers = [];
  asked = 0;
  localStorage.clear();
  putOffServers.set([]);
  showPanel(false);
  vi.stubGlobal("fetch", async (): Promise<Response> => {
    asked += 1;
    return Response.json({ servers, problem: null });
  });
});

const show = (status: ChatStatus | null, count: number) => canvas.show(<ServersNotice chat={CHAT} status={status} messages={messages(count)} />);
const text = () => canvas.element.textContent ?? "";

test("a turn that was over before the page opened the chat has its servers told", async () => {
  servers = [server("notes", "untrusted"), server("known", "trusted"), server("odd", "invalid")];
  await show(null, 0);
  expect(asked).toBe(0);
  await show("waiting", 2);
  await settled(() => expect(text()).toContain("1 MCP server along that you have not trusted: notes."));
});

test("servers are read once for each turn that called tools, when it comes to rest", async () => {
  await show("waiting", 2);
  await settled(() => expect(asked).toBeGreaterThan(0));
  const first = asked;
  servers = [server("notes", "untrusted")];
  await show("running", 3);
  await show("running", 4);
  expect(asked).toBe(first);
  await show("waiting", 4);
  await settled(() => expect(text()).toContain("notes"));
  await show("running", 5);
  expect(text()).toContain("notes");
  await show("requires_action", 6);
  await settled(() => expect(asked).toBe(first + 2));
  await show("waiting", 7);
  expect(asked).toBe(first + 2);
});

test("what is reviewed opens its tab, and what is put off comes back with another definition", async () => {
  servers = [server("notes", "untrusted")];
  await show("waiting", 2);
  await settled(() => expect(text()).toContain("notes"));
  await canvas.press(button(canvas.element, "Review")!);
  expect([panelOpen.get(), tabsOf(panelTabs.get(), "c1").open]).toEqual([true, "servers"]);
  await canvas.press(button(canvas.element, "Not now")!);
  expect(text()).toBe("");
  expect(parsedPutOff(localStorage.getItem("parley.servers.later"))).toEqual(["c1 notes d1"]);
  servers = [server("notes", "untrusted", "d2")];
  await show("waiting", 4);
  await settled(() => expect(text()).toContain("notes"));
});

test("a chat at rest is known by its newest message that called a tool", () => {
  const statuses: (ChatStatus | null)[] = [null, "running", "interrupting", "waiting", "requires_action", "error"];
  expect(statuses.map((each) => settledAt(each, messages(5)))).toEqual([undefined, undefined, undefined, 4, 4, 4]);
  expect(settledAt("waiting", messages(1))).toBe(0);
});
