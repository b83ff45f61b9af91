import { expect, test } from "vitest";
import { modeOf, opensBy } from "./modes.ts";

test("what is stored and is no mode is auto", () => {
  expect([null, "", "open", "closed", "wide"].map(modeOf)).toEqual(["auto", "auto", "open", "closed", "auto"]);
});

test("a mode decides before what would be opened by itself", () => {
  expect([true, false].map((auto) => [opensBy("auto", auto), opensBy("open", auto), opensBy("closed", auto)])).toEqual([
    [true, true, false],
    [false, true, false],
  ]);
});
