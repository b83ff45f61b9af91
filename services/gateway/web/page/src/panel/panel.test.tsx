// @vitest-environment happy-dom
import { QueryClientProvider } from "@tanstack/react-query";
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { panelTabs } from "./panel-tabs.ts";
import Panel from "./panel.tsx";
import { tabOrder } from "./tab-order.ts";

let canvas: HTMLElement;
let root: Root;

// Loaded before, so that no tab is waited for.
beforeAll(async () => {
  await Promise.all([import("./changes.tsx"), import("./files.tsx"), import("./processes.tsx"), import("./context.tsx"), import("./summary.tsx"), import("../goals/tab.tsx")]);
});

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  Object.assign(HTMLElement.prototype, { showPopover() {}, scrollIntoView() {} });
  localStorage.clear();
  panelTabs.set([]);
  tabOrder.set([]);
  vi.stubGlobal("fetch", async () => Response.json({ title: "Not found", detail: "It is not there.", code: "NOT_FOUND" }, { status: 404 }));
  canvas = document.createElement("main");
  document.body.append(canvas);
  root = createRoot(canvas);
});

afterEach(async () => {
  await act(async () => root.unmount());
  canvas.remove();
  queryClient.clear();
  localStorage.clear();
  vi.unstubAllGlobals();
});

async function show(chatId: string): Promise<void> {
  const chat = { id: chatId, root_chat_id: chatId, status: "waiting", title: chatId } as unknown as Chat;
  const pane = { width: 400, setWidth: () => {}, preview: () => {} } as never;
  await act(async () =>
    root.render(
      <StrictMode>
        <QueryClientProvider client={queryClient}><Panel chat={chat} pane={pane} onClose={() => {}} /></QueryClientProvider>
      </StrictMode>,
    ),
  );
}

const tabs = (): string[] => [...canvas.querySelectorAll("[role=tab]")].map((each) => each.textContent ?? "");
const open = (): string | null | undefined => canvas.querySelector("[role=tab][aria-selected=true]")?.textContent;

async function press(selector: string, words: string): Promise<void> {
  const found = [...canvas.querySelectorAll<HTMLElement>(selector)].find((each) => (each.getAttribute("aria-label") ?? each.textContent) === words);
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
  const list = canvas.querySelector("[role=tablist]")!;
  await act(async () => void list.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })));
  expect(open()).toBe("Processes");
});

test("a tab is moved with Alt and an arrow key or by dragging it, in all chats and after a reload", async () => {
  await show("a");
  const list = canvas.querySelector("[role=tablist]")!;
  await act(async () => void list.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", altKey: true, bubbles: true })));
  expect([open(), ...tabs().slice(0, 3)]).toEqual(["Changes", "Files", "Changes", "Processes"]);
  const data = new Map<string, string>();
  const dataTransfer = { setData: (kind: string, text: string) => data.set(kind, text), getData: (kind: string) => data.get(kind) ?? "", types: ["application/x-parley-tab"] };
  const drag = (kind: string, title: string) => {
    const tab = [...canvas.querySelectorAll("[role=tab]")].find((each) => each.textContent === title)!;
    return act(async () => void tab.dispatchEvent(Object.assign(new Event(kind, { bubbles: true, cancelable: true }), { dataTransfer })));
  };
  await drag("dragstart", "Summary");
  await drag("drop", "Files");
  await show("b");
  expect(tabs().slice(0, 3)).toEqual(["Summary", "Files", "Changes"]);
  expect(JSON.parse(localStorage.getItem("parley.panel.order")!).slice(0, 3)).toEqual(["summary", "files", "changes"]);
});
