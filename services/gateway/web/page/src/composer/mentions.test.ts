import { expect, test } from "vitest";
import { fileName, type Prompt, promptCall, promptsFor, promptText, type Resource, resourcesFor } from "./mentions.ts";

const GREET: Prompt = { name: "notes:greet", hint: "", arguments: ["name", "tone"], fill: async () => "" };
const SUM: Prompt = { name: "notes:sum", hint: "", arguments: [], fill: async () => "" };
const MEMO: Resource = { name: "Memo", hint: "notes memo://a/b.md", read: async () => new File([], "") };

test("a slash offers the prompts that begin so, and a space ends that", () => {
  expect(promptsFor("/notes:s", [GREET, SUM])).toEqual([SUM]);
  expect(promptsFor("/", [GREET, SUM])).toEqual([GREET, SUM]);
  expect(promptsFor("/notes:greet ", [GREET])).toEqual([]);
  expect(promptsFor("a /", [GREET])).toEqual([]);
});

test("an at sign at the end offers resources by name and address", () => {
  expect(resourcesFor("see @mem", [MEMO])).toEqual([MEMO]);
  expect(resourcesFor("@B.MD", [MEMO])).toEqual([MEMO]);
  expect(resourcesFor("ann@mem", [MEMO])).toEqual([]);
  expect(resourcesFor("@mem and", [MEMO])).toEqual([]);
});

test("a prompt is called with the arguments that were filled in", () => {
  expect(promptText(GREET)).toBe("/notes:greet name= tone=");
  expect(promptCall('/notes:greet name="Ann Lee" tone=', [GREET])).toEqual({ prompt: GREET, given: { name: "Ann Lee" } });
  expect(promptCall("/notes:other name=x", [GREET])).toBeNull();
  expect(promptCall("/notes:greetings", [GREET])).toBeNull();
});

test("a file has the last part of an address as its name", () => {
  expect(fileName("memo://a/b.md?x=1")).toBe("b.md");
  expect(fileName("memo:///")).toBe("memo-");
});
