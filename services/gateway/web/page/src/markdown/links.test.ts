import { expect, test } from "vitest";
import { safeLink } from "./links.ts";

test("only addresses of the web and of mail are links", () => {
  const given = ["javascript:alert(1)", " JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc", "//host/x", "/api", "blob:http://a/b", "https://a.test/x", "mailto:a@b.test"];
  expect(given.map((each) => safeLink(each)?.host ?? null)).toEqual([
    null, null, null, null, null, null, null, null, "a.test", "a@b.test",
  ]);
});

test("an address that could carry data out asks first", () => {
  expect(safeLink("https://a.test/?q=1")?.asks).toBe(false);
  expect(safeLink(`https://a.test/?q=${"x".repeat(80)}`)?.asks).toBe(true);
});
