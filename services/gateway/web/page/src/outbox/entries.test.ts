import { expect, test } from "vitest";
import { entryOf, type Outgoing, withEntry } from "./entries.ts";

function outgoing(key: string, writtenAtMs: number): Outgoing {
  return { key, writtenAtMs, chatId: "c1", content: [], busy: "queue", modelId: null, effort: null, mcpServerIds: null };
}

function stored(messages: readonly Outgoing[], message: Outgoing): readonly Outgoing[] {
  return withEntry(messages, entryOf(message.key), JSON.stringify(message));
}

const FIRST = outgoing("b", 1);
const SECOND = outgoing("a", 2);

test("messages of all tabs are in the order in which they were written", () => {
  expect(stored(stored([], SECOND), FIRST)).toEqual([FIRST, SECOND]);
});

test("an entry that changes or is removed concerns its own message alone", () => {
  const refused = { ...FIRST, refusal: "Too long." };
  expect(stored([FIRST, SECOND], refused)).toEqual([refused, SECOND]);
  expect(withEntry([FIRST, SECOND], entryOf("b"), null)).toEqual([SECOND]);
});

test("an entry that cannot be read changes nothing", () => {
  const values = ["{", "null", "[]", JSON.stringify(SECOND)];
  expect(values.map((value) => withEntry([FIRST], entryOf("b"), value))).toEqual(values.map(() => [FIRST]));
});
