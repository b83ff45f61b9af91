/** What becomes of a file that the server did not store. */
import { wordsOf } from "../api/problem.ts";
import type { Draft } from "../composer/drafts.ts";

/** A file that was not stored. */
interface Failed {
  name: string;
  /** The text that was pasted, if the file was made of one. */
  pasted: string | null;
  /** Whether the composer that it was attached to is still shown. */
  isShown: boolean;
  error: unknown;
}

type Outcome =
  /** It stays beside the message, where it can be tried again. */
  | { kind: "kept"; problem: string }
  /** Its text goes back into the message. */
  | { kind: "returned"; text: string; words: string }
  /** It is gone, which the person must learn. */
  | { kind: "gone"; words: string };

export function outcomeOf({ name, pasted, isShown, error }: Failed): Outcome {
  const why = wordsOf(error);
  if (pasted !== null) return { kind: "returned", text: pasted, words: `The pasted text was not stored as a file and is in the message. ${why}` };
  if (isShown) return { kind: "kept", problem: why };
  return { kind: "gone", words: `${name} was not attached. ${why}` };
}

/** Put a text that could not become a file after what is written by now. */
export function withReturned(was: Draft, text: string): Draft {
  return { ...was, text: was.text.trim() ? `${was.text}\n\n${text}` : text };
}
