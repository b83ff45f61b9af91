// @vitest-environment happy-dom
import { act } from "react";
import { expect, test, vi } from "vitest";
import type { Message } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { turnToRepeat, useTurnAgain } from "./turn-again.ts";

const canvas = newCanvas();

const said = (id: number, role: string, ...content: object[]): Message => ({ id, role, revision: 1, content }) as unknown as Message;
const FILE = { type: "file", file_id: "f1", name: "tides.csv", media_type: "text/csv" };
const ASKED = said(3, "user", { type: "text", text: "go" }, FILE);

test("the last message of the person is the one that is run again", () => {
  expect(turnToRepeat([said(1, "user", { type: "text", text: "a" }), said(2, "assistant"), ASKED, said(4, "assistant")])).toBe(ASKED);
  expect(turnToRepeat([said(4, "assistant")])).toBeNull();
  expect(turnToRepeat([said(1, "user")])).toBeNull();
  expect(turnToRepeat([{ ...ASKED, origin: "goal" }])).toBeNull();
});

test("a turn that is run again has all of its message, and one key however often it is asked for", async () => {
  const requests: [string | null, unknown][] = [];
  const stored: string[] = [];
  let status = 500;
  vi.stubGlobal("fetch", async (request: Request) => {
    requests.push([request.headers.get("Idempotency-Key"), await request.json()]);
    const problem = { type: "about:blank", title: "Broken", status, detail: "", instance: "", code: "INTERNAL", retryable: false };
    return status === 202 ? Response.json({ revert_id: "r1", dropped_queued_messages: [] }, { status }) : Response.json(problem, { status });
  });
  let again: (message: Message) => Promise<void> = async () => {};
  function Shown() {
    again = useTurnAgain("c1", (revertId) => stored.push(revertId));
    return null;
  }
  await canvas.show(<Shown />);
  await act(async () => expect(again(ASKED)).rejects.toThrow());
  status = 202;
  await act(async () => again(ASKED));
  await act(async () => again(said(5, "user", { type: "text", text: "go" })));

  const body = { content: [{ type: "text", text: "go" }, { type: "file", file_id: "f1" }], restore_files: true };
  const [first, second, other] = requests.map(([key]) => key);
  expect(requests.slice(0, 2).map((each) => each[1])).toEqual([body, body]);
  expect([first === second, first === other, stored]).toEqual([true, false, ["r1", "r1"]]);
});
