import { useState } from "react";
import type { Part } from "../api/types.ts";
import { opensBy, useDisplayMode } from "../display/modes.ts";
import { duration } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { Markdown } from "../markdown/markdown.tsx";

/** What the model thought: open while it comes and closed afterwards, unless the person wants it otherwise. */
export function Thinking({ part, isLive }: { part: Part & { type: "reasoning" }; isLive: boolean }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const byItself = opensBy(useDisplayMode("thinking"), isLive);
  const isOpen = chosen ?? byItself;
  const began = part.created_at ? Date.parse(part.created_at) : Number.NaN;
  const ended = part.completed_at ? Date.parse(part.completed_at) : Number.NaN;
  const took = ended - began;
  const title = /^\s*\*\*(.+?)\*\*/.exec(part.text)?.[1];
  if (!part.text.trim()) return null;
  const words = isLive && !part.completed_at ? "Thinking" : took > 0 ? `Thought for ${duration(took)}` : "Thought";
  return (
    <div className="thinking">
      <button type="button" className="thinking-head" aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
        <span className={`card-chevron${isOpen ? " is-open" : ""}`}><Icon name="chevron" /></span>
        {words}
        {title && !isOpen && <span className="thinking-title">{title}</span>}
      </button>
      {isOpen && <div className="thinking-body"><Markdown text={part.text} /></div>}
    </div>
  );
}
