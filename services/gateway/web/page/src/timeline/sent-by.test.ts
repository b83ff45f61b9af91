import { expect, test } from "vitest";
import { sentBy } from "./sent-by.ts";

const CHECKED = "The goal is not reached: the check `make test` ended with exit code 2. What it printed:\n\n1 failed\n\n2 passed\n\nThe goal is:\n\nAll pass.\n\nContinue until the check passes.";
const JUDGED = "The goal is not reached, says the model that judges it. Why:\n\nOne is left.\n\nThe goal is:\n\nAll.\n\nContinue until it is reached.";

test.each([
  [CHECKED, "goal", "The goal is not reached: the check `make test` ended with exit code 2. What it printed:"],
  [JUDGED, "goal", "The goal is not reached, says the model that judges it. Why:"],
  ["Woken by a monitor: the background process p1 (`make`) ended: exit 0", "monitor", "Woken by a monitor: the background process p1 (`make`) ended: exit 0"],
])("a message that the server wrote tells by what it was sent", (text, by, head) => {
  const sent = sentBy(text)!;
  expect([sent.by, sent.head, [sent.head, sent.rest].filter(Boolean).join("\n\n")]).toEqual([by, head, text]);
});

test.each(["The goal is not reached: why?", "Make the tests pass.\n\nContinue until the check passes.", "Who was woken by a monitor?"])("%s was written by a person", (text) =>
  expect(sentBy(text)).toBeNull());
