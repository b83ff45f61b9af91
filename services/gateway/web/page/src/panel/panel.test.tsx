// @vitest-environment happy-dom
import { act } from "react";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Chat } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { panelExpanded, panelOpen, showPanel } from "./tabs/panel-state.ts";
import { panelTabs } from "./tabs/panel-tabs.ts";
import Panel from "./panel.tsx";
import { tabOrder } from "./tabs/tab-order.ts";

const canvas = newCanvas();

// Loaded before, so that no tab is waited for.
beforeAll(async () => {
  await Promise.all([import("./changes.tsx"), import("./files/files.tsx"), import("./processes/processes.tsx"), import("./context/context.tsx"), import("./summary.tsx"), import("../goals/tab.tsx")]);
});

beforeEach(() => {
  localStorage.clear();
  panelTabs.set([]);
  tabOrder.set([]);
  serve();
});

afterEach(() => localStorage.clear());

async function show(chatId: string): Promise<void> {
  const chat = { id: chatId, root_chat_id: chatId, status: "waiting", title: chatId } as unknown as Chat;
  const pane = { width: 400, setWidth: () => {}, preview: () => {} } as never;
  await canvas.show(<Panel chat={chat} pane={pane} onClose={() => {}} />);
}

const tabs = (): string[] => [...canvas.element.querySelectorAll("[role=tab]")].map((each) => each.textContent ?? "");
const open = (): string | null | undefined => canvas.element.querySelector("[role=tab][aria-selected=true]")?.textContent;

async function press(selector: string, words: string): Promise<void> {
  const found = [...canvas.element.querySelectorAll<HTMLElement>(selector)].find((each) => (each.getAttribute("aria-label") ?? each.textContent) === words);
  await act(async () => found!.click());
}

async function toggle(title: string): Promise<void> {
  await press("button", "Choose the tabs");
  await press("[role=menuitemcheckbox]", title);
}

test("each chat keeps its open tab, also after a reload", async () => {
  await show("a");
  expect(open()).toBe("Changes");
  await press("[role=tab]", "Summary");
  await show("b");
  expect(open()).toBe("Summary");
  await press("[role=tab]", "Context");
  await show("a");
  expect(open()).toBe("Summary");
  expect(JSON.parse(localStorage.getItem("parley.panel.tabs")!)).toEqual([
    { chatId: "a", open: "summary", hidden: [] },
    { chatId: "b", open: "context", hidden: [] },
  ]);
});

test("tabs are put away for one chat, and shown and opened again", async () => {
  await show("a");
  await toggle("Goal");
  expect(tabs()).not.toContain("Goal");
  await toggle("Changes");
  expect(open()).toBe("Files");
  await show("b");
  expect(tabs()).toContain("Goal");
  await show("a");
  expect(tabs()).not.toContain("Goal");
  await toggle("Goal");
  expect([tabs().includes("Goal"), open()]).toEqual([true, "Goal"]);
});

test("arrow keys go from tab to tab that is shown", async () => {
  await show("a");
  await toggle("Files");
  const list = canvas.element.querySelector("[role=tablist]")!;
  await act(async () => void list.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })));
  expect(open()).toBe("Processes");
});

test("a tab is moved with Alt and an arrow key or by dragging it, in all chats and after a reload", async () => {
  await show("a");
  const list = canvas.element.querySelector("[role=tablist]")!;
  await act(async () => void list.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", altKey: true, bubbles: true })));
  expect([open(), ...tabs().slice(0, 3)]).toEqual(["Changes", "Files", "Changes", "Processes"]);
  const data = new Map<string, string>();
  const dataTransfer = { setData: (kind: string, text: string) => data.set(kind, text), getData: (kind: string) => data.get(kind) ?? "", types: ["application/x-parley-tab"] };
  const drag = (kind: string, title: string) => {
    const tab = [...canvas.element.querySelectorAll("[role=tab]")].find((each) => each.textContent === title)!;
    return act(async () => void tab.dispatchEvent(Object.assign(new Event(kind, { bubbles: true, cancelable: true }), { dataTransfer })));
  };
  await drag("dragstart", "Summary");
  await drag("drop", "Files");
  await show("b");
  expect(tabs().slice(0, 3)).toEqual(["Summary", "Files", "Changes"]);
  expect(JSON.parse(localStorage.getItem("parley.panel.order")!).slice(0, 3)).toEqual(["summary", "files", "changes"]);
});

test("the panel takes all the place and gives it back, and is no longer expanded when it is closed", async () => {
  await show("a");
  await press("button", "Give the panel all the place");
  expect([panelExpanded.get(), panelOpen.get()]).toEqual([true, true]);
  await press("button", "Show the chat beside the panel");
  expect(panelExpanded.get()).toBe(false);
  await press("button", "Give the panel all the place");
  await act(async () => showPanel(false));
  expect(panelExpanded.get()).toBe(false);
});
