/** The queue after a change of the user, as the server will have it. */
import type { InputPart, Part } from "../api/types.ts";

/** Return the list with one entry at another place, counted from 1. */
export function movedTo<T extends { id: string }>(queue: readonly T[], id: string, place: number): T[] {
  const moved = queue.find((each) => each.id === id);
  const rest = queue.filter((each) => each.id !== id);
  return moved ? rest.toSpliced(place - 1, 0, moved) : rest;
}

/** Return the parts of a message with another text; its files stay. */
export function withText(parts: readonly Part[], text: string): InputPart[] {
  const written = text.trim() ? [{ type: "text" as const, text: text.trim() }] : [];
  const files = parts.flatMap((part): InputPart[] => {
    if (part.type === "file") return [{ type: "file", file_id: part.file_id }];
    if (part.type !== "file-reference") return [];
    const { file_name, start_line, end_line, content } = part;
    return [{ type: "file-reference", file_name, start_line, end_line, content }];
  });
  return [...written, ...files];
}
