// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test } from "vitest";
import type { Chat } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { ChatRow } from "./row.tsx";

const CHAT = {
  id: "c1", root_chat_id: "c1", parent_chat_id: null, title: "Tides", status: "waiting", archived: false, pin_order: 0,
  child_count: 0, queue_length: 0, place_in_line: 0, has_unread: false, shared: false, diff_status: null, versions: { snapshot: 1 },
} as unknown as Chat;

const canvas = newCanvas();

beforeEach(() => serve());

async function show(isMine: boolean): Promise<HTMLElement> {
  await canvas.show(<ul><ChatRow chat={CHAT} isOpen={false} isMine={isMine} now={0} openId={null} /></ul>);
  return canvas.element.querySelector<HTMLElement>("a")!;
}

/** Ask for the menu of an element; return whether the browser's own is left out. */
async function ask(element: HTMLElement, how: MouseEventInit): Promise<boolean> {
  const asked = new MouseEvent("contextmenu", { bubbles: true, cancelable: true, ...how });
  await act(async () => void element.dispatchEvent(asked));
  return asked.defaultPrevented;
}

const items = (): string[] => [...canvas.element.querySelectorAll("[role=menuitem]")].map((each) => each.textContent ?? "");

async function press(element: Element, key: string): Promise<void> {
  await act(async () => void element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })));
}

test("the right button opens the menu of a row where it was pressed, once it is released", async () => {
  const row = await show(true);
  expect(await ask(row, { button: 2, buttons: 2, clientX: 40, clientY: 60 })).toBe(true);
  expect(items()).toEqual([]);
  await act(async () => {
    dispatchEvent(new Event("pointerup"));
    await new Promise((done) => setTimeout(done));
  });
  const menu = canvas.element.querySelector<HTMLElement>("[role=menu]")!;
  expect([menu.style.left, menu.style.top]).toEqual(["40px", "60px"]);
  expect([items().length, items()[0], items().at(-1)]).toEqual([9, "Open in a new tab", "Delete…"]);
  expect(document.activeElement?.textContent).toBe("Open in a new tab");
});

test("the key for it opens the same commands as the button, and the row has the focus again", async () => {
  const row = await show(true);
  expect(await ask(row, { button: 0 })).toBe(true);
  const byKey = items();
  await press(document.activeElement!, "Escape");
  expect([items(), document.activeElement === row]).toEqual([[], true]);
  const button = canvas.element.querySelector<HTMLElement>("[aria-haspopup]")!;
  await canvas.press(button);
  expect(items()).toEqual(byKey);
  await press(document.activeElement!, "Escape");
  expect(document.activeElement).toBe(button);
});

test("with Shift, and for a chat of somebody else, the browser has its own menu", async () => {
  expect(await ask(await show(true), { button: 2, shiftKey: true })).toBe(false);
  expect(await ask(await show(false), { button: 2 })).toBe(false);
  expect(items()).toEqual([]);
});
