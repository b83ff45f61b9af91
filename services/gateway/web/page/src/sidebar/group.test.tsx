// @vitest-environment happy-dom
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { closedGroups, parsedTitles } from "./closed-groups.ts";
import { ChatGroup } from "./group.tsx";

let canvas: HTMLElement;
let root: Root;

beforeEach(async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  localStorage.clear();
  canvas = document.createElement("main");
  document.body.append(canvas);
  root = createRoot(canvas);
  await act(async () =>
    root.render(
      <StrictMode>
        <ChatGroup title="Today" count={2} onDrop={() => {}}><li>first</li><li>second</li></ChatGroup>
        <ChatGroup title="Older" count={1} onDrop={() => {}}><li>third</li></ChatGroup>
      </StrictMode>,
    ),
  );
});

afterEach(async () => {
  await act(async () => root.unmount());
  canvas.remove();
  closedGroups.set([]);
  localStorage.clear();
});

const heads = (): [string, string | null][] => [...canvas.querySelectorAll("h2 button")].map((each) => [each.textContent!, each.getAttribute("aria-expanded")]);
const rows = (): string[] => [...canvas.querySelectorAll("li")].map((each) => each.textContent!);

test("a group is closed and opened by its heading, and stays so", async () => {
  const press = () => act(async () => canvas.querySelector<HTMLElement>("h2 button")!.click());
  await press();
  expect(heads()).toEqual([["Today2", "false"], ["Older", "true"]]);
  expect([rows(), localStorage.getItem("parley.side.closed")]).toEqual([["third"], '["Today"]']);
  await press();
  expect(heads()[0]).toEqual(["Today", "true"]);
  expect([rows().length, localStorage.getItem("parley.side.closed")]).toEqual([3, null]);
});

test("what is stored and is no list of titles is nothing", () => {
  expect([null, "{", '{"a": 1}', '["Today", 1]'].map(parsedTitles)).toEqual([[], [], [], ["Today"]]);
});
