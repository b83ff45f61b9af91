// @vitest-environment happy-dom
import { QueryClientProvider } from "@tanstack/react-query";
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import { queryOf, withFilter } from "./chat-filters.ts";
import FindDialog from "./find-dialog.tsx";

let canvas: HTMLElement;
let root: Root;
let asked: string[];

beforeEach(async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  Object.assign(HTMLElement.prototype, { scrollIntoView() {} });
  asked = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    if (pathname !== "/api/v1/chats") return Response.json({ items: [] });
    asked.push(decodeURIComponent(search));
    return Response.json({ items: [{ id: "c1", title: "Harvest" }], next_cursor: "more" });
  });
  canvas = document.createElement("main");
  document.body.append(canvas);
  root = createRoot(canvas);
  await act(async () =>
    root.render(
      <StrictMode>
        <QueryClientProvider client={queryClient}><FindDialog onClose={() => {}} /></QueryClientProvider>
      </StrictMode>,
    ),
  );
});

afterEach(async () => {
  await act(async () => root.unmount());
  canvas.remove();
  queryClient.clear();
  vi.unstubAllGlobals();
});

const field = (): HTMLInputElement => canvas.querySelector("input")!;
const pills = (): string[] => [...canvas.querySelectorAll(".pill")].map((each) => each.textContent ?? "");
const groups = (): string[] => [...canvas.querySelectorAll(".menu-heading")].map((each) => each.textContent ?? "");

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
  expect(canvas.querySelector("[role=status]")?.textContent).toBe("The first 8 chats are shown.");
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
  await act(async () => canvas.querySelector<HTMLElement>(".pill")!.click());
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
