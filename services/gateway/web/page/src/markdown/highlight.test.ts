import { expect, test } from "vitest";
import { tokensOf } from "./highlight.ts";

const OUTPUT = "1. Wait for 2 files, or return\n--- a/file";

test.each(["", "text", "plaintext"])("output that names no language has no colours (%j)", (language) => {
  expect(tokensOf(OUTPUT, language)).toEqual([{ kind: "plain", text: OUTPUT }]);
});

test("code has colours for the words that most languages share", () => {
  expect(tokensOf("for 2", "go")).toEqual([
    { kind: "keyword", text: "for" },
    { kind: "plain", text: " " },
    { kind: "number", text: "2" },
  ]);
});
