// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { moment } from "../ui/format.ts";
import { detailWords } from "./audit-log.tsx";

const AT = "2026-12-01T00:00:00+00:00";

test.each([
  ["limit_micros", 5_000_000, "$5.00"],
  ["expires_at", AT, moment(AT)],
  ["scopes", "chat:read", "chat:read"],
  ["method", "sign_in_link", "sign in link"],
  ["from_setting", "true", "yes"],
  ["is_enabled", false, "no"],
  ["names", ["a", "b"], '["a","b"]'],
])("the detail %s is told in words", (name, value, words) => expect(detailWords(name, value)).toBe(words));
