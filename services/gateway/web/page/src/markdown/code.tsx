import { memo, useState } from "react";
import { IconButton } from "../ui/button.tsx";
import { tokensOf } from "./highlight.ts";

/** Copy a text, and tell for a moment that it was copied. */
export function CopyButton({ text, label = "Copy" }: { text: () => string; label?: string }) {
  const [isDone, setDone] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text());
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // The clipboard may be refused; the text can still be selected.
    }
  }
  return <IconButton icon={isDone ? "check" : "copy"} label={isDone ? "Copied" : label} onClick={() => void copy()} />;
}

/** Code that still grows has colours up to this length: colouring all of it takes too long for each piece. */
const GROWING_CHARACTERS_MAX = 4_000;

interface CodeProps {
  code: string;
  language: string;
  isGrowing?: boolean;
}

export const Code = memo(function Code({ code, language, isGrowing = false }: CodeProps) {
  const coloured = isGrowing && code.length > GROWING_CHARACTERS_MAX ? "plain" : language.toLowerCase();
  return (
    <figure className="code">
      <figcaption className="code-head">
        <span>{language || "text"}</span>
        <CopyButton text={() => code} label="Copy the code" />
      </figcaption>
      <pre tabIndex={0} aria-label={`Code, ${language || "text"}`}>
        <code>
          {tokensOf(code, coloured).map((token, index) =>
            token.kind === "plain" ? token.text : <span key={index} className={`code-${token.kind}`}>{token.text}</span>,
          )}
        </code>
      </pre>
    </figure>
  );
});
