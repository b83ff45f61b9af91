import { expect, test } from "vitest";
import { ordered, parsedOrder, withMoved } from "./tab-order.ts";

const named = (...names: string[]) => names.map((name) => ({ name }));

test("things are in the order of their names, and new ones come behind", () => {
  expect(ordered(named("a", "b", "c"), [])).toEqual(named("a", "b", "c"));
  expect(ordered(named("a", "b", "c", "d"), ["c", "gone", "a"])).toEqual(named("c", "a", "b", "d"));
});

test("what is moved takes the place of the other", () => {
  expect(withMoved(["a", "b", "c"], "a", "c")).toEqual(["b", "c", "a"]);
  expect(withMoved(["a", "b", "c"], "c", "a")).toEqual(["c", "a", "b"]);
  expect(withMoved(["a", "b"], "a", "gone")).toEqual(["a", "b"]);
  expect(withMoved(["a", "b"], "gone", "a")).toEqual(["a", "b"]);
});

test("what is stored and is no list of names is nothing", () => {
  expect([null, "{", '{"a": 1}', '["a", 1]'].map(parsedOrder)).toEqual([[], [], [], ["a"]]);
});
