// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Markdown } from "./markdown.tsx";

let canvas: HTMLElement;
let root: Root;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  canvas = document.createElement("main");
  root = createRoot(canvas);
});

afterEach(async () => {
  await act(async () => root.unmount());
});

test("a link becomes one when its address comes, many blocks later", async () => {
  const text = "See [the guide][1] first.\n\none\n\ntwo\n\nthree\n\n[1]: https://example.org/guide\n";
  for (let end = 1; end <= text.length; end += 1) {
    await act(async () => root.render(<Markdown text={text.slice(0, end)} />));
  }
  expect(canvas.querySelector("a")?.getAttribute("href")).toBe("https://example.org/guide");
});
