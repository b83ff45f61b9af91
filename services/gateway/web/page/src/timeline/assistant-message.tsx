import { memo } from "react";
import { ActionCard } from "../cards/actions/card.tsx";
import { LooksCard } from "../cards/files.tsx";
import { standingOf } from "../cards/outcome.ts";
import { ToolCard } from "../cards/tool-card.tsx";
import type { Action, Message, Part } from "../api/types.ts";
import { IconButton } from "../ui/button.tsx";
import { count, duration, money } from "../ui/format.ts";
import { Menu, MenuHeading } from "../ui/menu.tsx";
import { CopyButton } from "../markdown/code.tsx";
import { type AssistantItem, type Call, type Piece, sameItem } from "./items.ts";
import { FallbackNote } from "./fallback-note.tsx";
import { Link } from "../markdown/link.tsx";
import { safeLink } from "../markdown/links.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { Notices } from "./notices.tsx";
import { useSmoothed } from "./smooth.ts";
import { Thinking } from "./thinking.tsx";
import { Attachments, textOf } from "./user-message.tsx";

interface Props {
  item: AssistantItem;
  chatId: string;
  /** Whether calls of it may still run. */
  isRunning: boolean;
  isLastOfTurn: boolean;
  actions: readonly Action[];
}

export const AssistantMessage = memo(
  function AssistantMessage({ item, chatId, isRunning, isLastOfTurn, actions }: Props) {
    const { message } = item;
    const parts = message?.content ?? [];
    const sources = parts.filter((part) => part.type === "source");
    const text = textOf(parts);
    return (
      <article className="assistant-message" id={message ? `m${message.id}` : undefined} aria-label="Answer" aria-busy={item.isLive}>
        {item.pieces.map((piece) => (
          <PieceView key={piece.key} piece={piece} chatId={chatId} isRunning={isRunning || item.isLive} isLive={item.isLive} actions={actions} />
        ))}
        <Attachments parts={parts} />
        {sources.length > 0 && <Sources sources={sources} />}
        {message && <Ending message={message} />}
        {message && text && isLastOfTurn && (
          <div className="message-tools">
            <CopyButton text={() => text} label="Copy the answer" />
            <Figures message={message} />
          </div>
        )}
      </article>
    );
  },
  (was, is) =>
    was.isRunning === is.isRunning &&
    was.isLastOfTurn === is.isLastOfTurn &&
    was.actions === is.actions &&
    sameItem(was.item, is.item),
);

interface PieceProps {
  piece: Piece;
  chatId: string;
  isRunning: boolean;
  isLive: boolean;
  actions: readonly Action[];
}

function PieceView({ piece, chatId, isRunning, isLive, actions }: PieceProps) {
  const actionOf = (call: Call): Action | undefined => actions.find((each) => each.tool_call_id === call.call.tool_call_id);
  const standing = (call: Call) => standingOf(call.result, isRunning, actionOf(call) !== undefined);
  if (piece.kind === "calls") return <LooksCard calls={piece.calls} standing={standing} />;
  if (piece.kind === "call") {
    const action = piece.call.result?.outcome ? undefined : actionOf(piece.call);
    if (action) return <ActionCard key={action.id} action={action} />;
    return <ToolCard call={piece.call.call} result={piece.call.result} standing={standing(piece.call)} chatId={chatId} />;
  }
  return <PartView part={piece.part} isLive={isLive} />;
}

function PartView({ part, isLive }: { part: Part; isLive: boolean }) {
  switch (part.type) {
    case "text":
      return part.text.trim() ? <Prose text={part.text} isLive={isLive} /> : null;
    case "reasoning":
      return <Thinking part={part} isLive={isLive} />;
    case "notice":
      return <Notices parts={[part]} />;
    case "fallback":
      return <FallbackNote modelId={part.model_id} failedModelId={part.failed_model_id} reason={part.text} />;
    case "context-file":
      return <p className="card-note">Read {part.context_file_path}{part.truncated ? " (shortened)" : ""}</p>;
    case "skill":
      return <p className="card-note">Skill {part.skill_name}</p>;
    default:
      return null;
  }
}

function Prose({ text, isLive }: { text: string; isLive: boolean }) {
  return <Markdown text={useSmoothed(text, isLive)} />;
}

const ENDINGS: Record<string, string> = {
  length: "The answer stops here because it reached its length limit.",
  content_filter: "The provider blocked the rest of the answer.",
  interrupted: "Interrupted. What was said until then is kept.",
};

function Ending({ message }: { message: Message }) {
  const words = ENDINGS[message.finish_reason ?? ""];
  return words ? <p className="message-ending">{words}</p> : null;
}

function Sources({ sources }: { sources: Part[] }) {
  return (
    <ul className="sources" aria-label="Sources">
      {sources.map((part, index) => {
        if (part.type !== "source") return null;
        const safe = safeLink(part.url);
        if (!safe) return null;
        const title = part.title || safe.host;
        return <li key={index}><Link href={part.url} text={title}>{title}</Link></li>;
      })}
    </ul>
  );
}

/** Tokens, cost and time of a step. */
function Figures({ message }: { message: Message }) {
  const usage = message.usage;
  if (!usage) return null;
  const rows: [string, string][] = [
    ["Tokens in", count(usage.input_tokens)],
    ["of them from the cache", count(usage.cache_read_tokens)],
    ["Tokens out", count(usage.output_tokens)],
    ["of them thinking", count(usage.reasoning_tokens)],
    ["Cost", usage.cost_micros === null ? "unknown price" : money(usage.cost_micros)],
    ["Model time", duration(message.model_runtime_ms)],
    ["Whole step", duration(message.runtime_ms)],
  ];
  return (
    <Menu label="Figures of this answer" button={(attributes) => <IconButton icon="clock" label="Tokens, cost and time" {...attributes} />}>
      <MenuHeading>{usage.is_estimate ? "Estimated" : "As the provider reported"}</MenuHeading>
      <table className="figures">
        <tbody>
          {rows.map(([label, value]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Menu>
  );
}
