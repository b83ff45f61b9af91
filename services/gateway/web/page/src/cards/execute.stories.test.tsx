// @vitest-environment happy-dom
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, test } from "vitest";
import * as stories from "./execute.stories.tsx";

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

async function press(element: Element): Promise<void> {
  await act(async () => (element as HTMLElement).click());
}

test.each(Object.entries(stories))("the story %s plays", async (_name, story) => {
  await act(async () => root.render(<StrictMode>{story.render()}</StrictMode>));
  await story.play(canvas, press);
});
