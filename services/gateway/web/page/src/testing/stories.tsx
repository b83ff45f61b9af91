/** States of components in the component story format, each with what must hold in it. */
import type { ReactNode } from "react";
import { test } from "vitest";
import { type Canvas, newCanvas } from "./canvas.tsx";

export interface Story {
  /** What the server answers, and whatever else comes before the component is shown. */
  before?: () => void;
  render: () => ReactNode;
  /** Checks what is shown; `press` presses an element and waits until that is shown. */
  play: (canvas: HTMLElement, press: (element: Element) => Promise<void>) => Promise<void>;
}

/** Show every story of a file, and check it; return where that is done. */
export function playAll(stories: Readonly<Record<string, Story>>): Canvas {
  const canvas = newCanvas();
  test.each(Object.entries(stories))("the story %s plays", async (_name, story) => {
    story.before?.();
    await canvas.show(story.render());
    await story.play(canvas.element, canvas.press);
  });
  return canvas;
}

/** Return the first button with these words. */
export function button(canvas: HTMLElement, words: string): HTMLButtonElement | undefined {
  return [...canvas.querySelectorAll("button")].find((each) => each.textContent === words || each.getAttribute("aria-label") === words);
}
