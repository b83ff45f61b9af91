// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import type { Message } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";
import { UserMessage } from "./user-message.tsx";

const canvas = newCanvas();

beforeEach(() => serve());

async function show(text: string): Promise<HTMLElement> {
  const message = { id: 1, chat_id: "c1", role: "user", content: [{ type: "text", text }], created_at: null } as unknown as Message;
  await canvas.show(<UserMessage message={message} isMine onEdit={() => {}} onRevert={() => {}} onTurn={() => {}} />);
  return canvas.element.querySelector("article")!;
}

test("a message of a goal says so, has its long part closed, and is not edited", async () => {
  const shown = await show("The goal is not reached: the check `make` ended with exit code 2. It printed:\n\n1 failed\n\nContinue until the check passes.");
  expect(shown.getAttribute("aria-label")).toBe("Sent by the goal");
  expect([shown.querySelector("details")?.open, shown.querySelector("details")?.textContent]).toEqual([false, "The whole message1 failed\n\nContinue until the check passes."]);
  expect(button(shown, "Edit and run again")).toBeUndefined();
});

test("a message of a person is whole and can be edited", async () => {
  const shown = await show("Make the tests pass.");
  expect([shown.getAttribute("aria-label"), shown.querySelector("details")]).toEqual(["You wrote", null]);
  expect(button(shown, "Edit and run again")).toBeDefined();
});
