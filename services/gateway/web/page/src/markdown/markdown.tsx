/**
 * Markdown as React elements. The text is only ever split into tokens; HTML in it stays text, images
 * are not loaded, and links lead to the web or to mail.
 */
import type { Token, Tokens } from "marked";
import { memo, type ReactNode, useRef } from "react";
import { isOpenFence, type Lexed, lexed } from "./blocks.ts";
import { Code } from "./code.tsx";
import { Link } from "./link.tsx";

const ROWS_MAX = 500;

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const before = useRef<Lexed | null>(null);
  before.current = lexed(text, before.current);
  const { blocks } = before.current;
  const definitions = blocks.flatMap((token) => (token.type === "def" ? token.raw : [])).join("");
  return (
    <div className="prose" dir="auto">
      {blocks.map((token, index) => (
        // The last block changes while text comes; all before it stay, unless a link is defined.
        <Block key={index} raw={token.raw} definitions={definitions} token={token} />
      ))}
    </div>
  );
});

const Block = memo(
  function Block({ token }: { raw: string; definitions: string; token: Token }): ReactNode {
    return block(token, 0);
  },
  (was, is) => was.raw === is.raw && was.definitions === is.definitions,
);

function block(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "hr":
      return <hr key={key} />;
    case "heading": {
      // The first heading is the title of the chat.
      const Heading = (["h2", "h3", "h4", "h5"] as const)[Math.min((token as Tokens.Heading).depth, 4) - 1] ?? "h5";
      return <Heading key={key}>{inlines(token.tokens)}</Heading>;
    }
    case "code":
      return (
        <Code
          key={key}
          code={token.text as string}
          language={((token.lang as string | undefined) ?? "").split(/\s/)[0] ?? ""}
          isGrowing={isOpenFence(token.raw)}
        />
      );
    case "blockquote":
      return <blockquote key={key}>{(token.tokens ?? []).map(block)}</blockquote>;
    case "list":
      return list(token as Tokens.List, key);
    case "table":
      return table(token as Tokens.Table, key);
    case "paragraph":
      return <p key={key}>{inlines(token.tokens)}</p>;
    case "text":
      return token.tokens ? <span key={key}>{inlines(token.tokens)}</span> : <span key={key}>{token.raw}</span>;
    default:
      return <p key={key}>{token.raw}</p>;
  }
}

function list(token: Tokens.List, key: number): ReactNode {
  const items = token.items.map((item, index) => (
    <li key={index} className={item.task ? "is-task" : undefined}>
      {item.task && <input type="checkbox" checked={Boolean(item.checked)} disabled aria-label={item.checked ? "done" : "open"} />}
      {item.tokens.filter((each) => each.type !== "checkbox").map(block)}
    </li>
  ));
  return token.ordered ? <ol key={key} start={Number(token.start) || 1}>{items}</ol> : <ul key={key}>{items}</ul>;
}

function table(token: Tokens.Table, key: number): ReactNode {
  const rows = token.rows.slice(0, ROWS_MAX);
  return (
    <div key={key} className="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{token.header.map((cell, index) => <th key={index} scope="col" className={aligned(cell)}>{inlines(cell.tokens)}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{row.map((cell, place) => <td key={place} className={aligned(cell)}>{inlines(cell.tokens)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {token.rows.length > ROWS_MAX && <p>{token.rows.length - ROWS_MAX} more rows; copy the answer to see them.</p>}
    </div>
  );
}

function aligned(cell: Tokens.TableCell): string | undefined {
  return cell.align ? `is-${cell.align}` : undefined;
}

function inlines(tokens: Token[] | undefined): ReactNode {
  return (tokens ?? []).map(inline);
}

function inline(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong key={key}>{inlines(token.tokens)}</strong>;
    case "em":
      return <em key={key}>{inlines(token.tokens)}</em>;
    case "del":
      return <del key={key}>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code key={key}>{token.text as string}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return <Link key={key} href={token.href as string} text={token.text as string}>{inlines(token.tokens)}</Link>;
    case "image":
      return <Link key={key} href={token.href as string} text="">{`image: ${(token.text as string) || "no description"}`}</Link>;
    case "escape":
      return token.text as string;
    case "text":
      return token.tokens ? inlines(token.tokens) : unescaped(token.text as string);
    default:
      return token.raw;
  }
}

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };

function unescaped(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (each) => ENTITIES[each] ?? each);
}
