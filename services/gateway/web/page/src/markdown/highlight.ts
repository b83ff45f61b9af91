/** Colours for code: strings, comments, numbers and keywords, which most languages share. */
export type TokenKind = "plain" | "comment" | "string" | "number" | "keyword" | "name";

export interface Token {
  kind: TokenKind;
  text: string;
}

const KEYWORDS = new Set(
  (
    "abstract and as assert async await break case catch class const continue def default defer del do elif else " +
    "end enum except export extends false False finally fn for from func function go goto if impl implements import in " +
    "interface is lambda let local loop match mod module mut namespace new nil none None not null of or package pass " +
    "private protected pub public raise ref return self static struct super switch then this throw trait true True try " +
    "type typeof undefined union unsafe use using val var void when where while with yield " +
    "SELECT FROM WHERE INSERT INTO UPDATE DELETE SET VALUES JOIN LEFT RIGHT ON GROUP ORDER BY LIMIT CREATE TABLE ALTER AND OR NOT NULL"
  ).split(" "),
);
const HASH = new Set(["bash", "sh", "shell", "console", "python", "py", "ruby", "rb", "yaml", "yml", "toml", "make", "dockerfile", "r", "perl"]);
/** Output, prose and what names no language: words such as "for" mean nothing in it. */
const UNCOLOURED = new Set(["", "text", "txt", "plain", "plaintext"]);
const CHARACTERS_MAX = 40_000;

/** Split code into tokens; long code stays plain. */
export function tokensOf(code: string, language: string): Token[] {
  if (code.length > CHARACTERS_MAX || UNCOLOURED.has(language)) {
    return [{ kind: "plain", text: code }];
  }
  const comment = HASH.has(language) ? "#[^\\n]*" : "//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)|--(?= )[^\\n]*";
  const pattern = new RegExp(
    `(?<comment>${comment})` +
      "|(?<string>\"\"\"[\\s\\S]*?(?:\"\"\"|$)|`(?:\\\\.|[^`\\\\])*`?|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?)" +
      "|(?<number>\\b\\d[\\w.]*\\b)" +
      "|(?<word>[A-Za-z_$][\\w$]*)(?<call>\\s*\\()?",
    "g",
  );
  const tokens: Token[] = [];
  let at = 0;
  for (const found of code.matchAll(pattern)) {
    if (found.index > at) tokens.push({ kind: "plain", text: code.slice(at, found.index) });
    const groups = found.groups!;
    if (groups.word !== undefined) {
      const kind = KEYWORDS.has(groups.word) ? "keyword" : groups.call ? "name" : "plain";
      tokens.push({ kind, text: groups.word });
      if (groups.call) tokens.push({ kind: "plain", text: groups.call });
    } else {
      const kind = groups.comment !== undefined ? "comment" : groups.string !== undefined ? "string" : "number";
      tokens.push({ kind, text: found[0] });
    }
    at = found.index + found[0].length;
  }
  if (at < code.length) tokens.push({ kind: "plain", text: code.slice(at) });
  return tokens;
}
