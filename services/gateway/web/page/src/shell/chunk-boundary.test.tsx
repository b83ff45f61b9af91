// @vitest-environment happy-dom
import { lazy, Suspense } from "react";
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import { ChunkBoundary } from "./chunk-boundary.tsx";

const canvas = newCanvas();

async function showFailing(message: string): Promise<void> {
  // React reports what a boundary catches.
  vi.spyOn(console, "error").mockImplementation(() => {});
  const Part = lazy((): Promise<{ default: () => null }> => Promise.reject(new Error(message)));
  await canvas.show(<ChunkBoundary><Suspense><Part /></Suspense></ChunkBoundary>);
  await settled(() => expect(canvas.element.querySelector("[role=alert]")).not.toBeNull());
  vi.restoreAllMocks();
}

test.each([
  "Failed to fetch dynamically imported module: https://parley.test/assets/screen-1a2b.js",
  "error loading dynamically imported module",
  "Importing a module script failed.",
  "Unable to preload CSS for /assets/panel-1a2b.css",
])("a file that is gone after an upgrade offers to load the page again: %s", async (message) => {
  await showFailing(message);
  expect(canvas.element.querySelector("h1")?.textContent).toBe("Parley was updated");
  expect(canvas.element.textContent).toContain("your drafts are kept");
  expect([...canvas.element.querySelectorAll("button")].map((each) => each.textContent)).toEqual(["Load again"]);
});

test("another failure says what it is, and loads the page again", async () => {
  await showFailing("Something else");
  expect(canvas.element.textContent).toContain("Something else");
  let reloads = 0;
  vi.spyOn(location, "reload").mockImplementation(() => void (reloads += 1));
  await canvas.press(button(canvas.element, "Load again")!);
  vi.restoreAllMocks();
  expect(reloads).toBe(1);
});
