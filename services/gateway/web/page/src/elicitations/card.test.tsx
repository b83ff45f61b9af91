// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { Action } from "../api/types.ts";
import { ActionCard } from "../cards/actions/card.tsx";
import { newCanvas } from "../testing/canvas.tsx";

const canvas = newCanvas();
let sent: unknown[];
let responses: Response[];

beforeEach(() => {
  sent = [];
  responses = [];
  queryClient.setQueryData(["mcp", "servers"], { items: [{ slug: "house", display_name: "The House" }], next_cursor: null });
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(await request.json());
    return responses.shift() ?? Response.json({}, { status: 202 });
  });
});

async function show(args: object): Promise<void> {
  const action = { id: "a1", chat_id: "c1", kind: "elicitation", tool_name: "house__paint", args } as Action;
  await canvas.show(<ActionCard action={action} />);
}

function button(words: string): HTMLButtonElement | undefined {
  return [...canvas.element.querySelectorAll("button")].find((each) => each.textContent === words);
}

async function press(words: string): Promise<void> {
  await act(async () => button(words)!.click());
}

async function type(input: HTMLInputElement, text: string): Promise<void> {
  const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input) as object, "value")!;
  await act(async () => {
    set!.call(input, text);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

const FORM = {
  message: "Which colour?\u202e",
  schema: {
    type: "object",
    properties: { colour: { type: "string", title: "Colour\u200b" }, coats: { type: "integer", default: 2 } },
    required: ["colour"],
  },
};

test("a form says who asks and who receives it, and is sent with its types", async () => {
  await show(FORM);
  expect(canvas.element.querySelector(".action-head")?.textContent).toBe("The server The House asks in house__paint");
  expect(canvas.element.querySelector(".mcp-text")?.textContent).toBe("Which colour?U+202E");
  expect(canvas.element.textContent).toContain("The House receives what you write here.");
  const [colour, coats] = canvas.element.querySelectorAll("input");
  expect([colour!.required, colour!.autocomplete, coats!.value]).toEqual([true, "off", "2"]);
  expect(canvas.element.querySelector("label")?.textContent).toBe("ColourU+200B (required)");
  await press("Accept");
  expect([sent, colour!.getAttribute("aria-invalid")]).toEqual([[], "true"]);
  await type(colour!, "red");
  await press("Accept");
  expect(sent).toEqual([{ decision: "accept", content: { colour: "red", coats: 2 } }]);
});

test("what the server refuses is marked at its field, and what was typed stays", async () => {
  const errors = [{ code: "INVALID", pointer: "/content/colour", detail: "It is none of the choices." }];
  responses.push(Response.json({ title: "Invalid", detail: "No.", code: "INVALID_REQUEST", errors }, { status: 422 }));
  await show(FORM);
  const colour = canvas.element.querySelector("input")!;
  await type(colour, "mauve");
  await press("Accept");
  await vi.waitFor(() => expect(canvas.element.querySelector("[role=alert]")?.textContent).toBe("It is none of the choices."));
  expect([colour.getAttribute("aria-invalid"), colour.value, button("Accept")!.disabled]).toEqual(["true", "mauve", false]);
});

test("a form is declined without its content", async () => {
  await show(FORM);
  await press("Decline");
  expect(sent).toEqual([{ decision: "refuse" }]);
});

test("an address shows its real host, and is accepted only after it was opened by a click", async () => {
  const open = vi.fn();
  vi.stubGlobal("open", open);
  await show({ message: "Pay", url: "https://bank.example@pay.evil.example:8443/x?y=1" });
  expect(canvas.element.querySelector(".mcp-host")?.textContent).toBe("pay.evil.example:8443");
  const link = canvas.element.querySelector("a")!;
  expect([link.target, link.rel, button("Accept")]).toEqual(["_blank", "noopener noreferrer", undefined]);
  expect(open).not.toHaveBeenCalled();
  link.addEventListener("click", (event) => event.preventDefault());
  await act(async () => link.click());
  await press("Accept");
  expect(sent).toEqual([{ decision: "accept" }]);
});

test("what is no web address cannot be opened, only declined", async () => {
  await show({ message: "Pay", url: "javascript:alert(1)" });
  expect([canvas.element.querySelector("a"), button("Accept")]).toEqual([null, undefined]);
  await press("Decline");
  expect(sent).toEqual([{ decision: "refuse" }]);
});
