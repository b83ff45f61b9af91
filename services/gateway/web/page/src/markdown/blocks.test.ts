import { lexer, type Tokens } from "marked";
import { expect, test } from "vitest";
import { isOpenFence, type Lexed, lexed } from "./blocks.ts";

const TEXT = `# Title

A paragraph with **bold** text
that goes on.

- one
- two

  with a paragraph

1. first
2. second

| a | b |
|---|---|
| 1 | 2 |

\`\`\`python
def f():

    return "# no heading"
\`\`\`

> quoted
lazily

Setext
======

<div>
html
</div>

The end & <b>more</b>.

***
`;

test("a text that grows by any pieces is split as the whole is", () => {
  for (const step of [1, 3, 7, 40]) {
    let state: Lexed | null = null;
    for (let end = 0; end <= TEXT.length; end += step) {
      const text = TEXT.slice(0, end);
      state = lexed(text, state);
      expect(state.blocks).toEqual([...lexer(text, { gfm: true })]);
    }
  }
});

test("what is settled is not split again", () => {
  const before = lexed(TEXT, null);
  const after = lexed(`${TEXT}\nand more`, before);
  expect(after.blocks[0]).toBe(before.blocks[0]);
});

test("a definition changes the links before it", () => {
  const begun = lexed("See [this].\n\nOne.\n\nTwo.\n\nThree.\n", null);
  const whole = lexed(`${begun.text}\n[this]: https://example.com\n`, begun);
  expect(whole.blocks).toEqual([...lexer(whole.text, { gfm: true })]);
});

test("another text is split anew", () => {
  expect(lexed("b", lexed("a\n\nb\n\nc", null)).blocks).toEqual([...lexer("b", { gfm: true })]);
});

test("a fence is open until it is closed", () => {
  expect(isOpenFence("```py\nx = 1")).toBe(true);
  expect(isOpenFence("```py\nx = 1\n```")).toBe(false);
  expect(isOpenFence("    indented")).toBe(false);
});

test.each([
  ["quotes", `${">".repeat(20_000)} deep`],
  ["quotes with spaces", `Before.\n\n${"> ".repeat(2_000)}deep`],
  ["lists", `${"- ".repeat(2_000)}deep`],
  ["numbers", `${"1. ".repeat(2_000)}deep`],
  ["lines that are indented ever more", Array.from({ length: 500 }, (_, depth) => `${"  ".repeat(depth)}- item`).join("\n")],
])("%s within each other without end are shown as they were written", (_name, text) => {
  const { blocks } = lexed(text, null);
  expect(blocks.map((each) => [each.type, each.raw])).toEqual([["code", text]]);
  expect(lexed(`${text} more`, { text, blocks }).blocks.at(-1)?.raw).toContain("more");
});

test("what people write within each other is split", () => {
  const text = `${"> ".repeat(8)}a\n\n${Array.from({ length: 12 }, (_, depth) => `${"  ".repeat(depth)}- item`).join("\n")}`;
  expect(lexed(text, null).blocks.map((each) => each.type)).toEqual(["blockquote", "space", "list"]);
});

test("a paragraph with too many signs of emphasis is shown as it was written, and others are not", () => {
  const many = "_a".repeat(1501);
  const [paragraph, , other] = lexed(`${many}\n\n_b_`, null).blocks as Tokens.Paragraph[];
  expect(paragraph?.tokens).toEqual([{ type: "text", raw: many, text: many }]);
  expect(other?.tokens[0]?.type).toBe("em");
});
