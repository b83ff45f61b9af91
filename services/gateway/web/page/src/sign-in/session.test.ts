import { expect, test } from "vitest";
import { returnAddress } from "./session.ts";

const ORIGIN = "https://parley.test";

function led(...addresses: string[]): string[] {
  return addresses.map((each) => returnAddress(`?to=${encodeURIComponent(each)}`, ORIGIN));
}

test("after the sign-in the address is one of this page", () => {
  expect(led("/chats/1?q=a#m17", "/")).toEqual(["/chats/1?q=a#m17", "/"]);
  expect(returnAddress("", ORIGIN)).toBe("/");
});

test("an address that leads elsewhere, however it is written, becomes the start", () => {
  const elsewhere = ["//evil.test", "/\\evil.test", "https://evil.test", "/\t/evil.test", "/\n/evil.test", "/\r\\evil.test"];
  const resolved = ["/.//evil.test", "/chats/..//evil.test", "///", "//["];
  expect(new Set(led(...elsewhere, ...resolved))).toEqual(new Set(["/"]));
});

test("the sign-in does not lead to itself", () => {
  expect(led("/sign-in", "/sign-in?to=/chats/1", "/chats/../sign-in", "")).toEqual(["/", "/", "/", "/"]);
});
