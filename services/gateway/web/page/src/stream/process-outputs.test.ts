import { expect, test } from "vitest";
import type { ChatEvent } from "../api/types.ts";
import { FOLLOWED_MAX, ProcessOutputs } from "./process-outputs.ts";

function output(processId: string, cursor: number, text: string): ChatEvent {
  const next_cursor = cursor + text.length;
  return { type: "process_output", chat_id: "c", process_output: { process_id: processId, cursor, text, next_cursor, truncation: null } };
}

test("the address names what is followed with the place at which it continues", async () => {
  let changes = 0;
  const outputs = new ProcessOutputs(() => {
    changes += 1;
  });
  const leave = outputs.follow("p");
  const leaveAgain = outputs.follow("p");
  outputs.follow("q");
  expect([outputs.query, changes]).toEqual(["p:0,q:0", 2]);

  const reset: ChatEvent = { type: "preview_reset", chat_id: "c" };
  expect(outputs.take([output("p", 0, "four"), reset, output("gone", 0, "x")])).toEqual([reset]);
  expect(outputs.query).toBe("p:4,q:0");

  leave();
  expect([outputs.query, changes]).toEqual(["p:4,q:0", 2]);
  leaveAgain();
  // It moved in the page.
  const leaveAtLast = outputs.follow("p");
  await Promise.resolve();
  expect([outputs.query, changes]).toEqual(["p:4,q:0", 2]);
  leaveAtLast();
  await Promise.resolve();
  expect([outputs.query, changes]).toEqual(["q:0", 3]);
});

function ended(processId: string): ChatEvent {
  return { type: "process_ended", chat_id: "c", process_ended: { process_id: processId, process: null, error: null } };
}

test("of too many processes the next is followed when one has ended", () => {
  let changes = 0;
  const outputs = new ProcessOutputs(() => {
    changes += 1;
  });
  const ids = Array.from({ length: FOLLOWED_MAX + 1 }, (_, index) => `p${index}`);
  for (const id of ids) outputs.follow(id);
  expect(outputs.query.split(",")).toEqual(ids.slice(0, -1).map((id) => `${id}:0`));
  outputs.take([output("p0", 0, ""), ended("p0")]);
  expect(outputs.query.split(",")).toEqual(ids.slice(1).map((id) => `${id}:0`));
  expect(changes).toBe(ids.length + 1);
});

test("a process that has ended is not followed again", async () => {
  let changes = 0;
  const outputs = new ProcessOutputs(() => {
    changes += 1;
  });
  const leave = outputs.follow("p");
  outputs.take([
    output("p", 0, "all"),
    ended("p"),
  ]);
  expect([outputs.query, outputs.states.get().p?.text]).toEqual(["", "all"]);
  leave();
  await Promise.resolve();
  expect(changes).toBe(1);
});
