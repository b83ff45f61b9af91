import { expect, test } from "vitest";
import { returnAddress } from "./session.ts";

test("after the sign-in the address is one of this page", () => {
  const addresses = ["/chats/1#m17", "//evil.test", "/\\evil.test", "https://evil.test", "/sign-in", ""];
  const led = addresses.map((each) => returnAddress(`?to=${encodeURIComponent(each)}`));
  expect(led).toEqual(["/chats/1#m17", "/", "/", "/", "/", "/"]);
});
