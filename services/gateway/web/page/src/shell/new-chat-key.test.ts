import { expect, test } from "vitest";
import { beginsChat, isMac } from "./new-chat-key.ts";

const N = { key: "n", altKey: false, ctrlKey: false, metaKey: false, shiftKey: false };

test.each([
  ["Alt N", { altKey: true }, true, false],
  ["Ctrl N", { ctrlKey: true }, true, false],
  ["Meta N", { metaKey: true }, true, true],
  ["N alone", {}, false, false],
  ["Alt Shift N", { altKey: true, shiftKey: true }, false, false],
  ["AltGr N", { altKey: true, ctrlKey: true }, false, false],
  ["Option N of a Mac", { altKey: true, key: "Dead" }, false, false],
  ["the key of N in a layout where it writes another letter", { altKey: true, key: "b" }, false, false],
  ["Alt N with Caps Lock", { altKey: true, key: "N" }, true, false],
])("%s", (_name, held, elsewhere, onMac) => {
  expect(beginsChat({ ...N, ...held }, false)).toBe(elsewhere);
  expect(beginsChat({ ...N, ...held }, true)).toBe(onMac);
});

test("Macs are known by their platform", () => {
  expect(["MacIntel", "Linux x86_64", "Win32"].map((each) => isMac(each))).toEqual([true, false, false]);
});
