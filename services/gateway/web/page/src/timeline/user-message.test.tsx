// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";
import { Toasts } from "../ui/toasts.tsx";
import { UserMessage } from "./user-message.tsx";

const canvas = newCanvas();

beforeEach(() => serve());

async function show(text: string, origin: Message["origin"]): Promise<HTMLElement> {
  const message = { id: 1, chat_id: "c1", role: "user", origin, content: [{ type: "text", text }], created_at: null } as unknown as Message;
  await canvas.show(<><UserMessage message={message} isMine onEdit={() => {}} onRevert={() => {}} onTurn={() => {}} /><Toasts /></>);
  return canvas.element.querySelector("article")!;
}

test("a message of a goal says so, has its long part closed, and is not edited", async () => {
  const shown = await show("The goal is not reached: the check `make` ended with exit code 2. It printed:\n\n1 failed\n\nContinue until the check passes.", "goal");
  expect(shown.getAttribute("aria-label")).toBe("Sent by the goal");
  expect([shown.querySelector("details")?.open, shown.querySelector("details")?.textContent]).toEqual([false, "The whole message1 failed\n\nContinue until the check passes."]);
  expect(button(shown, "Edit and run again")).toBeUndefined();
});

test("a message of a person is whole and can be edited", async () => {
  const shown = await show("The goal is not reached: the check `make` fails.\n\nContinue until the check passes.", "person");
  expect([shown.getAttribute("aria-label"), shown.querySelector("details")]).toEqual(["You wrote", null]);
  expect(button(shown, "Edit and run again")).toBeDefined();
});

test.each([
  ["program", "Sent by a program"],
  ["schedule", "Sent by a schedule"],
  ["agent", "Sent by the chat that this agent works for"],
] as const)("a message of a %s says so and is whole", async (origin, label) => {
  const shown = await show("Look.\n\nThen tell.", origin);
  expect([shown.getAttribute("aria-label"), shown.querySelector(".card-note")?.textContent, shown.querySelector("details")]).toEqual([label, label, null]);
});

test("the link of a message is told where the browser does not allow copying", async () => {
  vi.stubGlobal("navigator", { clipboard: { writeText: () => Promise.reject(new Error("refused")) } });
  const shown = await show("Look.", "person");
  await canvas.press(button(shown, "More commands of the message")!);
  const item = [...document.querySelectorAll("[role=menuitem]")].find((each) => each.textContent?.includes("Copy the link"));
  await canvas.press(item!);
  expect(canvas.element.querySelector(".toasts")?.textContent).toMatch(/The browser does not allow copying\. The link is .*#m1$/);
});
