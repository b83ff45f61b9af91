import { expect, test } from "vitest";
import type { Message, Part } from "../api/types.ts";
import { applyAll, EMPTY, type Tail } from "../stream/chat-state.ts";
import { groupsOf, joined, kept, NO_STARTS, startsAfter } from "./groups.ts";
import { itemsOf } from "./items.ts";
import type { Row } from "./rows.ts";

/** Messages of turns in which each question has one answer: the odd ids are those of the person. */
function messages(from: number, to: number): Message[] {
  const content: Part[] = [{ type: "text", text: "words" }];
  return Array.from({ length: to - from + 1 }, (_, place) => {
    const id = from + place;
    return { id, role: id % 2 ? "user" : "assistant", content } as unknown as Message;
  });
}

const NONE: Row["actions"] = [];

function rows(of: readonly Message[]): Row[] {
  return itemsOf(of, null).map((item) => ({ item, isLastOfTurn: true, isRunning: false, actions: NONE }));
}

const keys = (of: readonly Message[], starts = startsAfter(NO_STARTS, of, 0)) =>
  groupsOf(rows(of), starts).map(({ key, rows: { length } }) => [key, length]);

test("a page is a group, and so is the turn behind a long one", () => {
  expect(keys(messages(101, 150))).toEqual([["g101", 48], ["g149", 2]]);
  expect(keys(messages(101, 110))).toEqual([["g101", 10]]);
  expect(keys([])).toEqual([]);
});

test("pages before and turns behind leave all rows in their groups", () => {
  const first = startsAfter(NO_STARTS, messages(101, 150), 0);
  const second = startsAfter(first, messages(51, 154), 0);
  expect(keys(messages(51, 154), second)).toEqual([["g51", 50], ["g101", 48], ["g149", 6]]);
  // The turn at 153 was left in its group, and stays there whatever comes behind it.
  const third = startsAfter(second, messages(51, 184), 0);
  expect(keys(messages(51, 184), third)).toEqual([["g51", 50], ["g101", 48], ["g149", 34], ["g183", 2]]);
  expect(startsAfter(third, messages(51, 184), 0)).toBe(third);
});

test("a gap parts groups, and they stay apart when it is closed", () => {
  const apart = [...messages(1, 10), ...messages(101, 104)];
  const starts = startsAfter(NO_STARTS, apart, 10);
  expect(keys(apart, starts)).toEqual([["g1", 10], ["g101", 4]]);
  expect(keys(messages(1, 104), startsAfter(starts, messages(1, 104), 0))).toEqual([["g1", 100], ["g101", 4]]);
});

test("groups that show the same are the same, and a turn goes on in the group before it", () => {
  const all = messages(1, 60);
  const starts = startsAfter(NO_STARTS, all, 0);
  const before = groupsOf(rows(all), starts);
  const again = kept(before, groupsOf(rows(all), starts));
  expect(again.map((each, place) => each === before[place])).toEqual([true, true]);
  const grown = kept(before, joined(before, groupsOf(rows(messages(61, 62)), starts)));
  expect(grown.map((each) => each.rows.length)).toEqual([58, 4]);
  expect(grown.map((each, place) => each === before[place])).toEqual([true, false]);
});

test("a message has the row and the parts of its preview", () => {
  const part = (seq: number, part_index: number, given: Part) => ({
    type: "message_part" as const,
    chat_id: "c",
    message_part: { role: "assistant", part: given, history_version: 1, generation_attempt: 1, seq, part_index },
  });
  const thought: Part = { type: "reasoning", text: "hm" };
  const said: Part = { type: "text", text: "words" };
  const [question, answer] = messages(1, 2) as [Message, Message];
  const durable = { ...answer, content: [thought, said] };
  const event = (message: Message) => ({ type: "message" as const, chat_id: "c", message });
  const live = applyAll(EMPTY, [event(question), part(1, 0, thought), part(2, 1, said)] as never);
  const stored = applyAll(live, [event(durable)] as never);
  const shown = ({ messages: of, tail, previewed }: typeof live) =>
    itemsOf(of, tail, previewed).map((item) => [item.key, item.kind !== "assistant" ? [] : item.pieces.map(({ key }) => key)]);
  expect(shown(stored)).toEqual(shown(live));
  expect(stored.tail).toBeNull();
  // A part that comes late has a row of its own.
  const late: Tail = live.tail!;
  expect(new Set(itemsOf(stored.messages, late, stored.previewed).map(({ key }) => key)).size).toBe(3);
});
