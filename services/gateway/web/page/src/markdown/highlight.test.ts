import { expect, test } from "vitest";
import { tokensOf } from "./highlight.ts";

test("text without a language has no colours", () => {
  const text = "32 bytes from 127.0.0.1: # not a comment";
  for (const language of ["", "text", "output"]) expect(tokensOf(text, language)).toEqual([{ kind: "plain", text }]);
});

test("code of a language has the colours of its tokens", () => {
  const kinds = tokensOf("from os import path # why\nopen('a', 3)", "python").filter((each) => each.kind !== "plain");
  expect(kinds.map((each) => [each.kind, each.text])).toEqual([
    ["keyword", "from"],
    ["keyword", "import"],
    ["comment", "# why"],
    ["name", "open"],
    ["string", "'a'"],
    ["number", "3"],
  ]);
});
