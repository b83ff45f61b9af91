import { expect, test } from "vitest";
import type { Part } from "../api/types.ts";
import { movedTo, withText } from "./queue-order.ts";

test("an entry is moved to its new place and the others keep their order", () => {
  const queue = ["a", "b", "c"].map((id) => ({ id }));
  const orders = [1, 2, 3].map((place) => movedTo(queue, "a", place).map((each) => each.id).join(""));
  expect(orders).toEqual(["abc", "bac", "bca"]);
});

test("another text keeps the files of a message", () => {
  const parts = [{ type: "text", text: "old" }, { type: "file", file_id: "f1", name: "a.txt" }] as Part[];
  expect(withText(parts, " new ")).toEqual([{ type: "text", text: "new" }, { type: "file", file_id: "f1" }]);
});
