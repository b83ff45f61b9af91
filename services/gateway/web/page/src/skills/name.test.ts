import { expect, test } from "vitest";
import { skillName } from "./name.ts";

test("a skill has the name that its line gives", () => {
  expect(skillName("---\nname: review-code\ndescription: Reviews.\n---\n")).toBe("review-code");
  expect(skillName('---\nname:\t"review"\n---\n')).toBe("review");
});

test("a name that is left empty is not taken from the next line", () => {
  expect(skillName("---\nname: \ndescription: Reviews.\n---\n")).toBe("");
  expect(skillName("---\nname:\r\ndescription: Reviews.\r\n---\r\n")).toBe("");
});
