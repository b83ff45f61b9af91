import { expect, test } from "vitest";
import type { Message, Part } from "../api/types.ts";
import { grouped, itemsOf } from "./items.ts";
import { NO_ACTIONS, NO_TURNS, rowsIn, rowsOf, turnsOf } from "./rows.ts";

function message(id: number, role: Message["role"], content: Part[] = [{ type: "text", text: "words" }]): Message {
  return { id, role, content } as unknown as Message;
}

const look = (id: number): Message =>
  message(id, "assistant", [{ type: "tool-call", tool_call_id: `c${id}`, tool_name: "read_file" } as Part]);
const result = (id: number, of: number): Message =>
  message(id, "tool", [{ type: "tool-result", tool_call_id: `c${of}`, tool_name: "read_file" } as Part]);

/** A turn that began before what is known, one with calls that are one row, and one with a notice at its end. */
const ALL = [
  message(1, "assistant"),
  message(2, "user"), look(3), result(4, 3), look(5), result(6, 5), message(7, "assistant"),
  message(8, "user"), message(9, "assistant"), message(10, "system"),
];

test("the rows of turns are those of all messages", () => {
  expect(rowsIn(turnsOf(ALL, { 9: "t1.1" }, NO_TURNS))).toEqual(rowsOf(grouped(itemsOf(ALL, null, { 9: "t1.1" })), false, NO_ACTIONS));
  expect(rowsIn(turnsOf([], {}, NO_TURNS))).toEqual([]);
});

test("only turns that changed are made again, whatever comes before and behind them", () => {
  const known = turnsOf(ALL, {}, NO_TURNS);
  const changed = message(7, "assistant");
  const now = turnsOf([message(0, "user"), ...ALL.map((each) => (each.id === 7 ? changed : each)), message(11, "user")], {}, known);
  expect([...now].map(([id, turn]) => [id, turn === known.get(id)])).toEqual([[0, false], [2, false], [8, true], [11, false]]);
  expect(now.get(2)?.rows.at(-1)?.item).toMatchObject({ message: changed });
});

test("a turn whose message takes the place of a preview is made again", () => {
  const known = turnsOf(ALL, {}, NO_TURNS);
  const now = turnsOf(ALL, { 9: "t1.1" }, known);
  expect([...now].map(([id, turn]) => [id, turn === known.get(id)])).toEqual([[1, true], [2, true], [8, false]]);
  expect(now.get(8)?.rows.map(({ item }) => item.key)).toEqual(["m8", "t1.1", "m10"]);
});
