import { expect, test } from "vitest";
import { pauseMs, told } from "./attachment.ts";

test.each([
  ['{"type":"opened","cursor":7,"view_only":true}', { cursor: 7, state: { kind: "open", isViewOnly: true } }],
  ['{"type":"heartbeat","cursor":9}', {}],
  ['{"type":"closed","reason":"resync","cursor":12}', { cursor: 12 }],
  [
    '{"type":"exited","cursor":12,"process":{"exit":{"exit_code":3}}}',
    { cursor: 12, state: { kind: "ended", words: "The process ended with exit code 3." } },
  ],
  [
    '{"type":"exited","cursor":12,"process":{"exit":{"signal":"SIGKILL"}}}',
    { cursor: 12, state: { kind: "ended", words: "The process was ended by SIGKILL." } },
  ],
  ['{"type":"problem","code":"VIEW_ONLY","detail":"Look only."}', { state: { kind: "ended", words: "Look only." } }],
  ['{"type":"newer"}', {}],
])("the message %s of a terminal is understood", (text, meaning) => {
  expect(told(text)).toEqual(meaning);
});

test("pauses between attempts grow to ten seconds", () => {
  expect([1, 2, 3, 9].map(pauseMs)).toEqual([500, 1000, 2000, 10_000]);
});
