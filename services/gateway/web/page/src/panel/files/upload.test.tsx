// @vitest-environment happy-dom
import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { Toasts } from "../../ui/toasts.tsx";
import { Upload } from "./upload.tsx";

const canvas = newCanvas();
let there: Set<string>;
let written: string[];

beforeEach(() => {
  [there, written] = [new Set(["notes.md", "locked.md"]), []];
  vi.stubGlobal("fetch", async (request: Request) => {
    const query = new URL(request.url).searchParams;
    const path = query.get("path")!;
    const problem = (status: number, code: string, detail: string) =>
      Response.json({ type: "about:blank", title: code, status, detail, instance: "", code, retryable: false }, { status });
    if (query.get("create_only") && there.has(path)) return problem(409, "PATH_EXISTS", "Something is at the path already.");
    if (path === "locked.md") return problem(403, "FORBIDDEN", "It cannot be written.");
    written.push(path);
    return Response.json({});
  });
});

afterEach(() => vi.unstubAllGlobals());

async function upload(...names: string[]): Promise<void> {
  await canvas.show(<><Upload chatId="c1" directory="" onStored={() => {}} /><Toasts /></>);
  const picker = canvas.element.querySelector<HTMLInputElement>("input")!;
  Object.defineProperty(picker, "files", { value: names.map((name) => new File(["text"], name)), configurable: true });
  await act(async () => void picker.dispatchEvent(new Event("change", { bubbles: true })));
}

const asked = (): (string | null)[] => [...canvas.element.querySelectorAll("dialog code")].map((each) => each.textContent);

test("a file that is there is replaced once the person says so, and others are stored at once", async () => {
  await upload("new.md", "notes.md");
  await settled(() => expect(asked()).toEqual(["notes.md"]));
  expect(written).toEqual(["new.md"]);
  await canvas.press(button(canvas.element, "Replace")!);
  await settled(() => expect(written).toEqual(["new.md", "notes.md"]));
  await settled(() => expect(canvas.element.textContent).toContain("notes.md was replaced."));
  expect(asked()).toEqual([]);
});

test("a file that is there stays, and what cannot be replaced is named", async () => {
  await upload("notes.md");
  await settled(() => expect(asked()).toEqual(["notes.md"]));
  await canvas.press(button(canvas.element, "Keep what is there")!);
  expect([asked(), written]).toEqual([[], []]);
  await upload("locked.md");
  await settled(() => expect(asked()).toEqual(["locked.md"]));
  await canvas.press(button(canvas.element, "Replace")!);
  await settled(() => expect(canvas.element.textContent).toContain("locked.md was not stored. It cannot be written."));
  expect(canvas.element.textContent).not.toContain("locked.md was replaced.");
});
