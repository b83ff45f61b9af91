import { expect, test } from "vitest";
import { markedParts } from "./marked.tsx";

const marks = (text: string, words: string): string =>
  markedParts(text, words).map((each) => (each.match ? `[${each.text}]` : each.text)).join("");

test.each([
  ["Tide tables", "tide", "[Tide] tables"],
  ["src/tide/tables.ts", "ta", "src/tide/[ta]bles.ts"],
  ["New chat", "new chat", "[New chat]"],
  ["a chat that is new", "new chat", "a [chat] that is [new]"],
  ["f(x) + $1.00", "(x) $1.", "f[(x)] + [$1.]00"],
  ["Tides", "", "Tides"],
  ["Tides", "wind", "Tides"],
  ["notes", "note notes", "[notes]"],
])("in %j the words of %j are marked", (text, words, shown) => {
  expect(marks(text, words)).toBe(shown);
});
