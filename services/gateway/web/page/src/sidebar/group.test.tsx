// @vitest-environment happy-dom
import { act } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { closedGroups, parsedTitles } from "./closed-groups.ts";
import { ChatGroup } from "./group.tsx";

const canvas = newCanvas();

beforeEach(async () => {
  localStorage.clear();
  await canvas.show(
    <>
      <ChatGroup title="Today" count={2} onDrop={() => {}}><li>first</li><li>second</li></ChatGroup>
      <ChatGroup title="Older" count={1} onDrop={() => {}}><li>third</li></ChatGroup>
    </>,
  );
});

afterEach(() => {
  closedGroups.set([]);
  localStorage.clear();
});

const heads = (): [string, string | null][] => [...canvas.element.querySelectorAll("h2 button")].map((each) => [each.textContent!, each.getAttribute("aria-expanded")]);
const rows = (): string[] => [...canvas.element.querySelectorAll("li")].map((each) => each.textContent!);

test("a group is closed and opened by its heading, and stays so", async () => {
  const press = () => act(async () => canvas.element.querySelector<HTMLElement>("h2 button")!.click());
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
