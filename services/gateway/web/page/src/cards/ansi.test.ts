import { expect, test } from "vitest";
import { spansOf } from "./ansi.ts";

test("colours become classes, and other escapes vanish", () => {
  expect(spansOf("a\u001b[31;1mred\u001b[0m b\u001b[2K\u001b]0;title\u0007c\u001b[38;5;2mg\u001b[38;2;1;2;3mx")).toEqual([
    { text: "a", classes: "" },
    { text: "red", classes: "ansi-red ansi-bold" },
    { text: " b", classes: "" },
    { text: "c", classes: "" },
    { text: "g", classes: "ansi-green" },
    { text: "x", classes: "ansi-green" },
  ]);
});

test("a carriage return writes over its line", () => {
  expect(spansOf("10 %\r50 %\r100 %\r\ndone\r\n").map((each) => each.text)).toEqual(["100 %\ndone\n"]);
});
