// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { queryOf, withFilter } from "./chat-filters.ts";
import FindDialog from "./find-dialog.tsx";

const canvas = newCanvas();
let asked: string[];

beforeEach(async () => {
  asked = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    if (pathname !== "/api/v1/chats") return Response.json({ items: [] });
    asked.push(decodeURIComponent(search));
    return Response.json({ items: [{ id: "c1", title: "Harvest" }], next_cursor: "more" });
  });
  await canvas.show(<FindDialog onClose={() => {}} />);
});

const field = (): HTMLInputElement => canvas.element.querySelector("input")!;
const pills = (): string[] => [...canvas.element.querySelectorAll(".pill")].map((each) => each.textContent ?? "");
const groups = (): string[] => [...canvas.element.querySelectorAll(".menu-heading")].map((each) => each.textContent ?? "");

async function type(text: string): Promise<void> {
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!;
  await act(async () => {
    set.call(field(), text);
    field().dispatchEvent(new Event("input", { bubbles: true }));
  });
}

async function press(key: string): Promise<void> {
  await act(async () => void field().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
}

test("a typed filter becomes a pill by a space or Enter, narrows chats alone, and is removed by Backspace", async () => {
  await vi.waitFor(() => expect(groups()).toEqual(["Chats", "Commands"]));
  expect(canvas.element.querySelector("[role=status]")?.textContent).toBe("The first 8 chats are shown.");
  await type("is:archived ");
  expect([pills(), field().value]).toEqual([["Archived"], ""]);
  await vi.waitFor(() => expect(groups()).toEqual(["Chats"]));
  expect(asked.at(-1)).toContain("archived=true");
  await type("is:unread");
  await press("Enter");
  expect(pills()).toEqual(["Archived", "Unread"]);
  await type("harv");
  await vi.waitFor(() => expect(asked.at(-1)).toContain('q=has_unread:true title:"harv"'));
  await type("");
  await press("Backspace");
  expect(pills()).toEqual(["Archived"]);
  await act(async () => canvas.element.querySelector<HTMLElement>(".pill")!.click());
  await vi.waitFor(() => expect([pills(), groups()]).toEqual([[], ["Chats", "Commands"]]));
});

test("words that are no filter stay words", async () => {
  await type("is:green ");
  expect([pills(), field().value]).toEqual([[], "is:green "]);
});

test("shared and archived take each other's place, and words are quoted", () => {
  expect(withFilter(["unread", "shared"], "archived")).toEqual(["unread", "archived"]);
  expect(withFilter(["archived"], "unread")).toEqual(["archived", "unread"]);
  expect(withFilter(["unread"], "unread")).toEqual(["unread"]);
  expect(queryOf('a "b"', ["shared"])).toEqual({ q: 'title:"a ""b"""', shared_with_me: true });
  expect(queryOf("", [])).toEqual({});
});
