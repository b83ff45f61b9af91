/** Text that grows, split into blocks of Markdown: what cannot change any more is not split again. */
import { Lexer, type Token } from "marked";

export interface Lexed {
  text: string;
  blocks: readonly Token[];
}

/** So many blocks at the end may still become others: a paragraph a table, a list a longer one. */
const UNSETTLED = 2;

/** Quotes and lists within each other more than 40 times, or indented that far: nobody writes so, and splitting it fails or takes seconds. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){41}|^[ \t]{160,}(?:[-*+]|\d{1,9}[.)])[ \t]/m;

/** So many signs of emphasis in one paragraph: finding their partners takes quadratic time. */
const EMPHASES_MAX = 1500;
const EMPHASIS = /[_*]/g;

/** A lexer that shows a paragraph with too many signs of emphasis as it was written. */
class BoundedLexer extends Lexer {
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if ((source.match(EMPHASIS)?.length ?? 0) <= EMPHASES_MAX) return super.inlineTokens(source, tokens);
    tokens.push({ type: "text", raw: source, text: source });
    return tokens;
  }
}

/** Split a text; of the one before, if this one continues it, the settled blocks are kept. */
export function lexed(text: string, before: Lexed | null): Lexed {
  if (before?.text === text) return before;
  const kept = before && text.startsWith(before.text) && !text.includes("\r") ? settled(before.blocks) : [];
  const at = kept.reduce((length, token) => length + token.raw.length, 0);
  const rest = split(text.slice(at));
  // A definition changes the links of all blocks.
  if (at > 0 && [...kept, ...rest].some((token) => token.type === "def")) return lexed(text, null);
  return { text, blocks: [...kept, ...rest] };
}

/** Split a text into blocks; one that cannot be split is shown as it was written. */
function split(text: string): Token[] {
  const asWritten: Token = { type: "code", raw: text, text };
  if (TOO_DEEP.test(text)) return [asWritten];
  try {
    return new BoundedLexer({ gfm: true }).lex(text);
  } catch {
    return [asWritten];
  }
}

function settled(blocks: readonly Token[]): readonly Token[] {
  let end = blocks.length;
  for (let left = UNSETTLED; left > 0 && end > 0; ) {
    end -= 1;
    if (blocks[end]?.type !== "space") left -= 1;
  }
  return blocks.slice(0, end);
}

/** Return whether a block of code has a fence that nothing closed yet. */
export function isOpenFence(raw: string): boolean {
  return /^ {0,3}(`{3,}|~{3,})/.test(raw) && !/\n {0,3}(`{3,}|~{3,})$/.test(raw.trimEnd());
}
