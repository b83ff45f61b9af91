import { expect, test } from "vitest";
import { bytes } from "./format.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [10 * 1024, "10 KiB"],
  [3 * 1024 ** 2, "3 MiB"],
  [1.25 * 1024 ** 2, "1.3 MiB"],
  [10 * 1024 ** 3, "10 GiB"],
  [1.5 * 1024 ** 4, "1.5 TiB"],
])("%d bytes are written as %s", (size, words) => expect(bytes(size)).toBe(words));
