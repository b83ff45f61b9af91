import { expect, test } from "vitest";
import { countHidden, visibleText } from "./visible.tsx";

test("bidirectional controls, invisible characters and tags are found, and plain text is not", () => {
  expect(countHidden("rm -rf /\n\tkeep")).toBe(0);
  expect(countHidden("a\u202eb\u2066c\u200bd\ufeffe\u{e0041}f\u0007")).toBe(6);
});

test("a text of its own names hidden characters by their code points", () => {
  expect(visibleText("a\u202eb\u{e0041}\n")).toBe("aU+202EbU+E0041\n");
});
