import { expect, test } from "vitest";
import { titleOf, wordsOf } from "./quota-words.ts";

test.each([
  ["live_workspaces", 1, 5, "Running workspaces", "1 of 5"],
  ["cpu_millicores", 1500, 8000, "Processors", "1.5 of 8"],
  ["memory_bytes", 0, 10 * 1024 ** 3, "Memory", "0 B of 10 GiB"],
  ["pids", 12, null, "Processes", "12"],
] as const)("the quota of %s is said in words", (dimension, used, limit, title, words) => {
  const quota = { dimension, used, limit, how_to_free: "" };
  expect([titleOf(quota), wordsOf(quota)]).toEqual([title, words]);
});
