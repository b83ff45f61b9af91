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

async function show(text: string): Promise<void> {
  await act(async () => root.render(<Markdown text={text} />));
}

test("of a table of 5,000 rows the first are shown, and how many there are more", async () => {
  await show(`|a|b|\n|-|-|\n${"|1|2|\n".repeat(5_000)}`);
  expect(canvas.querySelectorAll("tbody tr")).toHaveLength(500);
  expect(canvas.textContent).toContain("4500 more rows; copy the answer to see them.");
});

test("a line of a mebibyte is shown", async () => {
  await show("x".repeat(1 << 20));
  expect(canvas.querySelector("p")?.textContent?.length).toBe(1 << 20);
});

test("text that cannot be split is shown as it was written", async () => {
  await show(`${">".repeat(20_000)} deep`);
  expect(canvas.querySelector("pre")?.textContent).toBe(`${">".repeat(20_000)} deep`);
});

test("HTML stays text, pictures are links, and links show their host", async () => {
  await show("<b>bold</b> ![pixel](https://elsewhere.test/p.png) [here](https://example.org/a) [there](javascript:alert(1))");
  expect(canvas.textContent).toContain("<b>bold</b>");
  expect(canvas.querySelectorAll("b, img")).toHaveLength(0);
  expect([...canvas.querySelectorAll("a")].map((each) => each.getAttribute("href"))).toEqual(["https://elsewhere.test/p.png", "https://example.org/a"]);
  expect([...canvas.querySelectorAll(".link-host")].map((each) => each.textContent)).toEqual([" (elsewhere.test)", " (example.org)"]);
});
