/** A text with the words that were searched for marked. */
import type { ReactNode } from "react";
import { Visible } from "../ui/visible.tsx";

/** Return a text as parts, each with whether it is one of the words; where several fit, the longest. */
export function markedParts(text: string, words: string): { text: string; match: boolean }[] {
  const searched = words.split(/\s+/).filter(Boolean).toSorted((a, b) => b.length - a.length);
  // The whole of what was typed first, as titles and commands are found by it.
  const wanted = [...new Set([words.trim(), ...searched])].filter(Boolean).map((each) => each.replaceAll(/[\\^$.*+?()[\]{}|\-/]/gu, "\\$&"));
  if (wanted.length === 0) return [{ text, match: false }];
  const parts = text.split(new RegExp(`(${wanted.join("|")})`, "gi"));
  return parts.map((each, place) => ({ text: each, match: place % 2 === 1 })).filter((each) => each.text !== "");
}

export function Marked({ text, words }: { text: string; words: string }): ReactNode {
  return markedParts(text, words).map((part, place) =>
    part.match ? <mark key={place}><Visible>{part.text}</Visible></mark> : <Visible key={place}>{part.text}</Visible>,
  );
}
