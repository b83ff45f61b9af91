import { expect, test } from "vitest";
import { ahead, bytes } from "./format.ts";

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
  [-1, "now"],
  [1, "in 1 second"],
  [42_000, "in 42 seconds"],
  [89_000 * 2, "in 3 minutes"],
  [3 * 3_600_000, "in 3 hours"],
  [12 * 86_400_000, "in 12 days"],
])("%d ms ahead are told as %s", (wait, words) => expect(ahead(1000 + wait, 1000)).toBe(words));
