// @vitest-environment happy-dom
import { QueryClientProvider } from "@tanstack/react-query";
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import { settled } from "../testing/canvas.tsx";
import AdvisorSection from "./advisor.tsx";

const MODELS = [{ id: "m1", name: "large", display_name: "Large", provider_display_name: "Maker" }];
const USUAL = { enabled: false, uses_per_turn_max: 3, output_tokens_max: 16384, model_id: null, reasoning_effort: null };

let canvas: HTMLElement;
let root: Root;
/** What the server has stored. */
let stored: Record<string, unknown>;
let requests: string[];

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  stored = { ...USUAL };
  requests = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const path = new URL(request.url).pathname;
    requests.push(`${request.method} ${path}`);
    if (path === "/api/v1/models") return Response.json({ items: MODELS, next_cursor: null });
    if (request.method === "PUT") stored = { ...stored, ...((await request.json()) as object) };
    return Response.json(stored);
  });
});

afterEach(async () => {
  await close();
  vi.unstubAllGlobals();
});

async function open(): Promise<void> {
  canvas = document.createElement("main");
  document.body.append(canvas);
  root = createRoot(canvas);
  await act(async () =>
    root.render(
      <StrictMode>
        <QueryClientProvider client={queryClient}><AdvisorSection /></QueryClientProvider>
      </StrictMode>,
    ),
  );
  await settled(() => expect(fields().options).toContain("Large · Maker"));
}

async function close(): Promise<void> {
  await act(async () => root.unmount());
  canvas.remove();
  queryClient.clear();
}

function inputs(): HTMLInputElement[] {
  return [...canvas.querySelectorAll("input")];
}

function fields() {
  const numbers = inputs().filter((each) => each.type === "number").map((each) => each.value);
  const isEnabled = inputs().find((each) => each.type === "checkbox")?.checked;
  const select = canvas.querySelector("select");
  return { isEnabled, numbers, model: select?.value, options: [...(select?.options ?? [])].map((each) => each.text) };
}

/** Change a field as a person does, so that React hears of it. */
async function set(field: HTMLInputElement | HTMLSelectElement, value: string): Promise<void> {
  const prototype = field instanceof HTMLSelectElement ? HTMLSelectElement.prototype : HTMLInputElement.prototype;
  await act(async () => {
    Object.getOwnPropertyDescriptor(prototype, "value")!.set!.call(field, value);
    field.dispatchEvent(new Event(field instanceof HTMLSelectElement ? "change" : "input", { bubbles: true }));
  });
}

test("the settings of the advisor are saved, and read back when the section is opened again", async () => {
  await open();
  expect(fields()).toMatchObject({ isEnabled: false, numbers: ["3", "16384"], model: "" });
  await act(async () => inputs().find((each) => each.type === "checkbox")!.click());
  const [uses, tokens] = inputs().filter((each) => each.type === "number");
  await set(uses!, "2");
  await set(tokens!, "900");
  await set(canvas.querySelector("select")!, "m1");
  await act(async () => canvas.querySelector<HTMLButtonElement>("button[type=submit]")!.click());
  await settled(() => expect(stored).toMatchObject({ enabled: true, uses_per_turn_max: 2, output_tokens_max: 900, model_id: "m1" }));
  await close();
  requests = [];
  await open();
  expect(requests).toContain("GET /api/v1/settings/advisor");
  expect(fields()).toMatchObject({ isEnabled: true, numbers: ["2", "900"], model: "m1" });
});
