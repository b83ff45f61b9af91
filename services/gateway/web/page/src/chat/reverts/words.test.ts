import { expect, test } from "vitest";
import type { Message } from "../../api/types.ts";
import { pathsShown, revertFacts } from "./words.ts";

const MESSAGES = [1, 2, 3, 4, 5].map((id) => ({ id, role: id % 2 ? "user" : "assistant" })) as unknown as Message[];

const files = (numbers: object = {}) =>
  ({ paths: [], omitted: 0, restored: 0, conflicts: 0, lost: 0, incomplete: false, running_process_ids: [], ...numbers });

test.each([
  [5, { deleted_messages: 1, dropped_messages: 0, files: null }, ["This message is deleted."]],
  [3, { deleted_messages: 3, dropped_messages: 0, files: files() }, ["2 messages are deleted: this one and 1 later one, with their answers.", "No file was changed since."]],
  [1, { deleted_messages: 5, dropped_messages: 1, files: null }, ["3 messages are deleted: this one and 2 later ones, with their answers.", "1 queued message is dropped."]],
  [5, { deleted_messages: 4, dropped_messages: 2, files: null }, ["This message is deleted, with its answer.", "2 queued messages are dropped."]],
  // Not all of it is known.
  [9, { deleted_messages: 1, dropped_messages: 0, files: null }, ["1 message is deleted, this one included."]],
  [
    5,
    { deleted_messages: 1, dropped_messages: 0, files: files({ restored: 1, conflicts: 2, lost: 1, incomplete: true }) },
    [
      "This message is deleted.",
      "1 file was changed since, and can be put back.",
      "2 files stay as they are: they were changed by somebody else too.",
      "1 file cannot be put back: what it was before is not kept.",
      "Older changes of files are not known any more, and stay.",
    ],
  ],
  [5, { deleted_messages: 1, dropped_messages: 0, files: files({ restored: 3, lost: 2 }) }, [
    "This message is deleted.",
    "3 files were changed since, and can be put back.",
    "2 files cannot be put back: what they were before is not kept.",
  ]],
])("going back to before message %i is told in words", (messageId, preview, facts) => {
  expect(revertFacts(preview, messageId, MESSAGES)).toEqual(facts);
});

test("the first paths are shown, and how many more there are", () => {
  const paths = ["a", "b", "c"].map((path) => ({ path, action: null, outcome: null }));
  const preview = { deleted_messages: 1, dropped_messages: 0, files: files({ paths, omitted: 4 }) };
  expect(pathsShown(preview, 2)).toEqual({ paths: ["a", "b"], more: 5 });
});
