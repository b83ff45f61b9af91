// @vitest-environment happy-dom
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Part } from "../api/types.ts";
import { Thinking } from "../timeline/thinking.tsx";
import { setDisplayMode } from "./modes.ts";
import DisplaySection from "./section.tsx";

const THOUGHT = { type: "reasoning", text: "**Plan** first this, then that" } as unknown as Part & { type: "reasoning" };

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
        <Thinking part={THOUGHT} isLive={false} />
        <DisplaySection />
      </StrictMode>,
    ),
  );
});

afterEach(async () => {
  await act(async () => root.unmount());
  canvas.remove();
  setDisplayMode("thinking", "auto");
  localStorage.clear();
});

const head = (): HTMLElement => canvas.querySelector(".thinking-head")!;
const isOpen = (): boolean => head().getAttribute("aria-expanded") === "true";

async function choose(place: number): Promise<void> {
  await act(async () => canvas.querySelectorAll<HTMLElement>("input[name=display-thinking]")[place]!.click());
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
