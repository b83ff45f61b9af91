import { expect, test } from "vitest";
import { meaningOfEnter } from "./send-key.ts";

const PLAIN = { isShift: false, isModified: false, isPhone: false };

test("Enter sends, begins a line with Shift and on phones, and interrupts with Ctrl", () => {
  expect(meaningOfEnter("enter", PLAIN)).toBe("send");
  expect(meaningOfEnter("enter", { ...PLAIN, isShift: true })).toBe("line");
  expect(meaningOfEnter("enter", { ...PLAIN, isPhone: true })).toBe("line");
  expect(meaningOfEnter("enter", { ...PLAIN, isModified: true })).toBe("interrupt");
});

test("if Ctrl Enter sends, Enter begins a line, and Shift interrupts besides", () => {
  expect(meaningOfEnter("ctrl-enter", PLAIN)).toBe("line");
  expect(meaningOfEnter("ctrl-enter", { ...PLAIN, isModified: true })).toBe("send");
  expect(meaningOfEnter("ctrl-enter", { ...PLAIN, isModified: true, isShift: true })).toBe("interrupt");
});
