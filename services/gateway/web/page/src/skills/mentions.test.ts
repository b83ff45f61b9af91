import { expect, test } from "vitest";
import { type Skill, skillsFor, withSkill } from "./mentions.ts";

const REVIEW: Skill = { name: "review", description: "", isOfWorkspace: true };
const PREVIEW: Skill = { name: "preview", description: "", isOfWorkspace: false };

test("a slash at the start of a word offers skills, and one in a path or an address does not", () => {
  expect(skillsFor("/", [REVIEW])).toEqual([REVIEW]);
  expect(skillsFor("please /rev", [PREVIEW, REVIEW])).toEqual([REVIEW, PREVIEW]);
  for (const text of ["src/rev", "https://rev", "/usr/rev", "/review now"]) expect(skillsFor(text, [REVIEW])).toEqual([]);
});

test("a chosen skill takes the place of what was typed for it", () => {
  expect(withSkill("/rev", REVIEW)).toBe("Use the skill review: ");
  expect(withSkill("do it with /rev", REVIEW)).toBe("do it with the skill review ");
});
