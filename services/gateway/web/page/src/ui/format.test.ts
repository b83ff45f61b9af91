import { expect, test } from "vitest";
import { ahead, bytes, duration, waiting } from "./format.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [10 * 1024, "10 KiB"],
  [3 * 1024 ** 2, "3 MiB"],
  [1.25 * 1024 ** 2, "1.3 MiB"],
  [10 * 1024 ** 3, "10 GiB"],
  [1.5 * 1024 ** 4, "1.5 TiB"],
])("%d bytes are written as %s", (size, words) => expect(bytes(size)).toBe(words));

test.each([
  [999, "999 ms"],
  [1500, "1.5 s"],
  [59_000, "59 s"],
  [180_000, "3 min"],
  [200_000, "3 min 20 s"],
  [3_600_000, "1 h"],
  [5_400_000, "1 h 30 min"],
])("%d ms are written as %s", (ms, words) => expect(duration(ms)).toBe(words));

test.each([
  [100, "1 s"],
  [59_001, "60 s"],
  [180_000, "3 min"],
  [3_599_500, "1 h"],
])("to wait %d ms is written as %s", (ms, words) => expect(waiting(ms)).toBe(words));

test.each([
  [-1, "now"],
  [1, "in 1 second"],
  [42_000, "in 42 seconds"],
  [89_000 * 2, "in 3 minutes"],
  [3 * 3_600_000, "in 3 hours"],
  [12 * 86_400_000, "in 12 days"],
])("%d ms ahead are told as %s", (wait, words) => expect(ahead(1000 + wait, 1000)).toBe(words));
