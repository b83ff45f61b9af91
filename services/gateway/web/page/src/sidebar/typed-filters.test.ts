import { expect, test } from "vitest";
import { typedFilter } from "./typed-filters.ts";

test("a filter that is typed with a space after it is taken out of the text", () => {
  expect(typedFilter("is:unread ")).toEqual({ name: "unread", text: "" });
  expect(typedFilter("release notes is:Archived ")).toEqual({ name: "archived", text: "release notes" });
});

test("words that are no filters stay words", () => {
  for (const text of ["is:unread", "is:odd ", "this:unread ", "unread "]) expect(typedFilter(text)).toBeNull();
});
