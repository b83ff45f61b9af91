// @vitest-environment happy-dom
import { act } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Part } from "../api/types.ts";
import { Thinking } from "../timeline/thinking.tsx";
import { newCanvas } from "../testing/canvas.tsx";
import { setDisplayMode } from "./modes.ts";
import DisplaySection from "./section.tsx";

const THOUGHT = { type: "reasoning", text: "**Plan** first this, then that" } as unknown as Part & { type: "reasoning" };

const canvas = newCanvas();

beforeEach(async () => {
  localStorage.clear();
  await canvas.show(
    <>
      <Thinking part={THOUGHT} isLive={false} />
      <DisplaySection />
    </>,
  );
});

afterEach(() => {
  setDisplayMode("thinking", "auto");
  localStorage.clear();
});

const head = (): HTMLElement => canvas.element.querySelector(".thinking-head")!;
const isOpen = (): boolean => head().getAttribute("aria-expanded") === "true";

async function choose(place: number): Promise<void> {
  await act(async () => canvas.element.querySelectorAll<HTMLElement>("input[name=display-thinking]")[place]!.click());
}

test("what is opened by itself follows the choice, and a click of the person wins over it", async () => {
  expect(isOpen()).toBe(false);
  await choose(1);
  expect([isOpen(), localStorage.getItem("parley.display.thinking")]).toEqual([true, "open"]);
  await act(async () => head().click());
  expect(isOpen()).toBe(false);
  await choose(2);
  expect([isOpen(), localStorage.getItem("parley.display.thinking")]).toEqual([false, "closed"]);
  await choose(0);
  expect(localStorage.getItem("parley.display.thinking")).toBeNull();
});
