/** Characters that change or hide what is read, made visible: where text decides what will run. */
import type { ReactNode } from "react";

// Bidirectional controls, zero-width and invisible characters, tags, and controls but tab and newline.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

export function countHidden(text: string): number {
  return text.match(HIDDEN)?.length ?? 0;
}

function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Return a text with every hidden character as its code point, where no elements can be. */
export function visibleText(text: string): string {
  return text.replaceAll(HIDDEN, codeOf);
}

/** Show a text with every hidden character as its code point. */
export function Visible({ children }: { children: string }): ReactNode {
  const shown: ReactNode[] = [];
  let at = 0;
  for (const found of children.matchAll(HIDDEN)) {
    shown.push(children.slice(at, found.index));
    shown.push(
      <span key={found.index} className="hidden-character" title="A character that is not shown by itself">
        {codeOf(found[0])}
      </span>,
    );
    at = found.index + found[0].length;
  }
  shown.push(children.slice(at));
  return <bdi>{shown}</bdi>;
}
