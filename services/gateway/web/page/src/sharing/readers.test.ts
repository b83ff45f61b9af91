import { expect, test } from "vitest";
import { inputsOf, type Reader, readersOf, withoutReader, withReader } from "./readers.ts";

const ANNA: Reader = { kind: "user", id: "1" };
const TEAM: Reader = { kind: "group", id: "1" };

test("a user and a group of the same id are two readers, and each is there once", () => {
  const both = withReader(withReader(withReader([], ANNA), TEAM), ANNA);
  expect(both).toEqual([ANNA, TEAM]);
  expect(withoutReader(both, ANNA)).toEqual([TEAM]);
  expect(inputsOf(both)).toEqual([{ user_id: "1" }, { group_id: "1" }]);
});

test("what the server stored is read back as the same readers", () => {
  const created_at = null;
  const shares = [{ user_id: "1", group_id: null, created_at }, { user_id: null, group_id: "1", created_at }];
  expect(readersOf(shares)).toEqual([ANNA, TEAM]);
});
