/** What going back deletes and restores, in sentences. */
import type { components } from "../../api/schema.d.ts";
import type { Message } from "../../api/types.ts";
import { plural } from "../../ui/format.ts";

type Preview = components["schemas"]["PreviewRevertResponse"];

/** Return how many prompts of people are deleted, of what is known; null if not all of it is. */
function promptsFrom(messageId: number, messages: readonly Message[]): number | null {
  if (!messages.some((each) => each.id === messageId)) return null;
  return messages.filter((each) => each.id >= messageId && each.role === "user").length;
}

/** Say what is deleted. Steps of an answer are messages of the chat too, so they are not what is counted. */
export function revertFacts(preview: Preview, messageId: number, messages: readonly Message[]): string[] {
  const prompts = promptsFrom(messageId, messages);
  const others = prompts === null ? 0 : preview.deleted_messages - prompts;
  const facts: string[] = [];
  if (prompts === null || others < 0) facts.push(`${plural(preview.deleted_messages, "message is", "messages are")} deleted, this one included.`);
  else {
    const written = prompts === 1 ? "This message is deleted" : `${prompts} messages are deleted: this one and ${plural(prompts - 1, "later one")}`;
    facts.push(others > 0 ? `${written}, with ${prompts === 1 ? "its answer" : "their answers"}.` : `${written}.`);
  }
  if (preview.dropped_messages > 0) facts.push(`${plural(preview.dropped_messages, "queued message is", "queued messages are")} dropped.`);
  return [...facts, ...fileFacts(preview)];
}

function fileFacts({ files }: Preview): string[] {
  if (!files) return [];
  const facts: string[] = [];
  const kept = files.conflicts + files.lost;
  if (files.restored > 0) facts.push(`${plural(files.restored, "file was", "files were")} changed since, and can be put back.`);
  if (files.conflicts > 0) facts.push(`${plural(files.conflicts, "file stays as it is: it was", "files stay as they are: they were")} changed by somebody else too.`);
  if (files.lost === 1) facts.push("1 file cannot be put back: what it was before is not kept.");
  if (files.lost > 1) facts.push(`${files.lost} files cannot be put back: what they were before is not kept.`);
  if (files.restored + kept === 0) facts.push("No file was changed since.");
  if (files.incomplete) facts.push("Older changes of files are not known any more, and stay.");
  return facts;
}

/** Return the beginning of each path that would be put back, and how many more there are. */
export function pathsShown(preview: Preview, most: number): { paths: string[]; more: number } {
  const all = preview.files?.paths ?? [];
  return { paths: all.slice(0, most).map((each) => each.path), more: Math.max(0, all.length - most) + (preview.files?.omitted ?? 0) };
}
