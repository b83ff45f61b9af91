// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { archiveOf } from "./archive.ts";
import { ImportSkills } from "./import.tsx";
import { skillContent } from "./skill-file.ts";

const text = (name: string): string => skillContent({ name, description: `Does ${name}`, body: "So.\n" });

const canvas = newCanvas();
let stored: Map<string, string>;

beforeEach(async () => {
  stored = new Map();
  vi.stubGlobal("fetch", async (request: Request) => {
    const name = request.url.split("/").at(-1)!;
    if (name === "wrong") return Response.json({ title: "Invalid", detail: "It has no text.", code: "INVALID_REQUEST" }, { status: 422 });
    stored.set(name, ((await request.json()) as { content: string }).content);
    return Response.json({ name });
  });
  await canvas.show(<ImportSkills known={["review"]} />);
});

async function choose(...files: File[]): Promise<void> {
  const field = canvas.element.querySelector("input")!;
  Object.defineProperty(field, "files", { value: files, configurable: true });
  await act(async () => void field.dispatchEvent(new Event("change", { bubbles: true })));
  await vi.waitFor(() => expect(canvas.element.querySelector("[role=group], [role=alert]")).not.toBeNull());
}

async function press(words: string): Promise<void> {
  await act(async () => [...canvas.element.querySelectorAll("button")].find((each) => each.textContent === words)!.click());
}

const zip = (...entries: { path: string; text: string }[]): File => new File([archiveOf(entries)], "skills.zip");
const listed = (): string[] => [...canvas.element.querySelectorAll("li")].map((each) => each.textContent!.trim());
const alerts = (): string[] => [...canvas.element.querySelectorAll("[role=alert]")].map((each) => each.textContent!);

test("skills of an archive are listed with what they replace, and stored after that is confirmed", async () => {
  await choose(zip({ path: "review/SKILL.md", text: text("review") }, { path: "deploy/SKILL.md", text: text("deploy") }, { path: "deploy/run.sh", text: "" }));
  expect(listed()).toEqual(["review replaces yours", "deploy"]);
  expect(canvas.element.textContent).toContain("1 file is left out: deploy/run.sh.");
  expect(stored.size).toBe(0);
  await press("Store 2 skills");
  await vi.waitFor(() => expect(canvas.element.querySelector("[role=group]")).toBeNull());
  expect([...stored]).toEqual([["review", text("review")], ["deploy", text("deploy")]]);
});

test("one that the server refuses is named, and the others are stored", async () => {
  await choose(new File([text("wrong")], "SKILL.md"), new File([text("right")], "other.md"));
  await press("Store 2 skills");
  await vi.waitFor(() => expect(alerts()).toEqual(["wrong: It has no text."]));
  expect([...stored.keys()]).toEqual(["right"]);
});

test("what is no skill is refused before anything is stored", async () => {
  await choose(zip({ path: "../up/SKILL.md", text: text("up") }));
  expect(alerts()).toEqual(["The archive has a file whose name leads out of it."]);
  await choose(zip({ path: "README.md", text: "" }));
  await vi.waitFor(() => expect(alerts()).toEqual(["There is no SKILL.md in it."]));
  expect(stored.size).toBe(0);
});
