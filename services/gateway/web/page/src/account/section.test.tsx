// @vitest-environment happy-dom
import { act, type ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AccountExport } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { Exports } from "./exports.tsx";
import AccountSection from "./section.tsx";
import { exportsOf } from "./sources.ts";

const RUNNING: AccountExport = {
  id: "e1",
  user_id: "u1",
  requested_by: "u1",
  state: "running",
  entries: 3,
  size_bytes: 2048,
  created_at: "2026-11-17T18:00:00Z",
  completed_at: null,
  expires_at: null,
  failure: "",
};

const canvas = newCanvas();
let items: AccountExport[];
let posted: string[];
let refusal: object | null;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  items = [];
  posted = [];
  refusal = null;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "GET") return Response.json({ items });
    posted.push(new URL(request.url).pathname);
    if (refusal) return Response.json(refusal, { status: 403 });
    items = [RUNNING];
    return Response.json(RUNNING, { status: 202 });
  });
});

afterEach(() => {
  vi.useRealTimers();
});

async function pass(ms: number): Promise<void> {
  await act(async () => void (await vi.advanceTimersByTimeAsync(ms)));
}

async function show(shown: ReactNode = <AccountSection />): Promise<void> {
  await canvas.show(<>{shown}</>);
  await pass(10);
}

async function press(words: string): Promise<void> {
  await act(async () => button(words).click());
  await pass(10);
}

const button = (words: string): HTMLButtonElement => [...canvas.element.querySelectorAll("button")].find((each) => each.textContent === words)!;
const status = (): string | null | undefined => canvas.element.querySelector("[role=status]")?.textContent;
const link = (): string | null | undefined => canvas.element.querySelector("a[download]")?.getAttribute("href");

test("an export is begun, followed while it is made, and offered as a file", async () => {
  await show();
  await press("Export all that is mine");
  expect(posted).toEqual(["/api/v1/me/exports"]);
  expect(status()).toContain("3 files, 2 KiB before compression so far");
  expect(canvas.element.querySelector("progress")).not.toBeNull();
  expect(button("Begin a new export").disabled).toBe(true);
  expect(link()).toBeUndefined();
  items = [{ ...RUNNING, state: "complete", entries: 7, expires_at: "2026-11-24T18:00:00Z" }];
  await pass(2_000);
  expect(status()).toBe("The export is complete: 7 files, 2 KiB before compression.");
  expect(link()).toBe("/api/v1/me/exports/e1/archive");
  expect(canvas.element.textContent).toContain("It is deleted on");
  expect(button("Begin a new export").disabled).toBe(false);
});

test("a failed export says why, has what was collected, and can be begun again", async () => {
  items = [{ ...RUNNING, state: "failed", failure: "It failed three times.\u202e Begin a new one.", expires_at: "2026-11-24T18:00:00Z" }];
  await show();
  const alert = canvas.element.querySelector("[role=alert]");
  expect(alert?.textContent).toContain("The export failed");
  expect(alert?.textContent).toContain("It failed three times.U+202E Begin a new one.");
  expect(link()).toBe("/api/v1/me/exports/e1/archive");
  await press("Begin a new export");
  expect(status()).toContain("The export is being made");
});

test("a refusal is shown in words, and how an account is deleted", async () => {
  refusal = { title: "Forbidden", detail: "Keys with scopes make no exports.", code: "FORBIDDEN" };
  await show();
  await press("Export all that is mine");
  expect(canvas.element.querySelector("[role=alert]")?.textContent).toContain("Keys with scopes make no exports.");
  expect(canvas.element.textContent).toContain("An administrator deletes accounts.");
});

test("an administrator exports what a user leaves behind", async () => {
  await show(<Exports source={exportsOf("u7")} label="Begin the export" />);
  await press("Begin the export");
  expect(posted).toEqual(["/api/v1/users/u7/exports"]);
  items = [{ ...RUNNING, state: "complete" }];
  await pass(2_000);
  expect(link()).toBe("/api/v1/users/u7/exports/e1/archive");
});
