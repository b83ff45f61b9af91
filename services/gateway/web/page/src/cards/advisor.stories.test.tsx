// @vitest-environment happy-dom
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as stories from "./advisor.stories.tsx";

let canvas: HTMLElement;
let root: Root;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  canvas = document.createElement("main");
  document.body.append(canvas);
  root = createRoot(canvas);
});

afterEach(async () => {
  await act(async () => root.unmount());
  canvas.remove();
});

async function shown(story: stories.Story): Promise<void> {
  await act(async () => root.render(<StrictMode>{story.render()}</StrictMode>));
}

async function press(element: Element): Promise<void> {
  await act(async () => (element as HTMLElement).click());
}

test.each(Object.entries(stories))("the story %s plays", async (_name, story) => {
  await shown(story);
  await story.play(canvas, press);
});

test("the cards beside the advisor's are those without it", async () => {
  // The ids of bodies count all cards of the page.
  const outer = () => [...canvas.querySelectorAll("main > .card")].map((each) => each.outerHTML.replaceAll(/ (id|aria-controls)="[^"]*"/g, ""));
  await shown(stories.Neighbours);
  const without = outer();
  await shown(stories.BetweenNeighbours);
  expect(outer()).toEqual(without);
  expect(without).toHaveLength(2);
});
