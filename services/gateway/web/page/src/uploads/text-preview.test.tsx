// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";
import { isText, TextButton } from "./text-preview.tsx";

const canvas = newCanvas();

async function open(name: string, mediaType: string): Promise<void> {
  Object.assign(HTMLDialogElement.prototype, { showModal() {}, close() {} });
  await canvas.show(<TextButton file={{ id: "f1", name, mediaType }} />);
  await canvas.press(button(canvas.element, `Read ${name}`)!);
}

async function shows(text: string): Promise<void> {
  await settled(() => expect(canvas.element.textContent).toContain(text));
}

test("an attached text is read in a dialog, with hidden characters made visible, and said to go on", async () => {
  const headers = { "Content-Range": "bytes 0-199999/900000" };
  serve({ "/api/v1/files/f1": new Response("one\u202etwo", { status: 206, headers }) });
  await open("pasted.txt", "text/plain");
  await shows("oneU+202Etwo");
  expect(canvas.element.textContent).toContain("This is its beginning.");
  await canvas.press(button(canvas.element, "Close")!);
  expect(canvas.element.querySelector("dialog")).toBeNull();
});

test("Markdown is formatted, and a file that is gone says so", async () => {
  serve({ "/api/v1/files/f1": new Response("a **strong** word") });
  await open("notes.md", "text/markdown");
  await settled(() => expect(canvas.element.querySelector(".text-preview strong")?.textContent).toBe("strong"));
  serve();
  await canvas.show(null);
  await canvas.show(<TextButton file={{ id: "f2", name: "gone.txt", mediaType: "text/plain" }} />);
  await canvas.press(button(canvas.element, "Read gone.txt")!);
  await shows("This file is not there");
});

test("pictures and documents are no text", () => {
  expect(["text/plain; charset=utf-8", "application/json", "image/png", "application/pdf", null].map(isText)).toEqual([true, true, false, false, false]);
});
