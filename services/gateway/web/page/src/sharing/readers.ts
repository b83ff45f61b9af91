/** With whom a chat is shared: users and groups, each once. */
import type { components } from "../api/schema.d.ts";

type ShareInput = components["schemas"]["ShareInput"];
type Share = components["schemas"]["Share"];

export interface Reader {
  kind: "user" | "group";
  id: string;
}

export function readersOf(shares: readonly Share[]): Reader[] {
  return shares.flatMap((each): Reader[] => {
    if (each.user_id) return [{ kind: "user", id: each.user_id }];
    return each.group_id ? [{ kind: "group", id: each.group_id }] : [];
  });
}

export function has(readers: readonly Reader[], reader: Reader): boolean {
  return readers.some((each) => each.kind === reader.kind && each.id === reader.id);
}

export function withReader(readers: readonly Reader[], reader: Reader): Reader[] {
  return has(readers, reader) ? [...readers] : [...readers, reader];
}

export function withoutReader(readers: readonly Reader[], reader: Reader): Reader[] {
  return readers.filter((each) => each.kind !== reader.kind || each.id !== reader.id);
}

export function inputsOf(readers: readonly Reader[]): ShareInput[] {
  return readers.map((each) => (each.kind === "user" ? { user_id: each.id } : { group_id: each.id }));
}
