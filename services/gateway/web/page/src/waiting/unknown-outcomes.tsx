/** Calls whose outcome is unknown, until a person's next message in their chat, or in its root. */
import { Link } from "wouter";
import type { UnknownOutcome } from "../api/types.ts";
import { callWords, record, string } from "../cards/outcome.ts";
import { Json } from "../cards/tool-card.tsx";
import { touchedBy } from "../cards/actions/touched.ts";
import { ago } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";

export function UnknownOutcomes({ outcomes }: { outcomes: readonly UnknownOutcome[] }) {
  const now = Date.now();
  return (
    <ul className="waiting-list" aria-label="Calls that may have run">
      {outcomes.map((each) => (
        <li key={`${each.chat_id} ${each.tool_call_id}`}>
          <p className="waiting-chat">
            <Link href={`/chats/${each.chat_id}#m${each.message_id}`}>{each.chat_title || "A chat"}</Link>
            {each.ended_at && <span className="card-note"> {ago(each.ended_at, now)}</span>}
          </p>
          <MayHaveRun outcome={each} />
        </li>
      ))}
    </ul>
  );
}

function MayHaveRun({ outcome }: { outcome: UnknownOutcome }) {
  const args = record(outcome.args);
  const command = string(args.command);
  const touched = touchedBy(outcome.tool_name, args);
  return (
    <div className="action" role="group" aria-label="May have run">
      <div className="action-head">
        <Icon name="warn" />
        <span>It is not known whether <Visible>{callWords(outcome.tool_name)}</Visible> ran</span>
      </div>
      {command && (
        <div className="terminal">
          <div className="terminal-command"><span aria-hidden="true">$ </span><Visible>{command}</Visible></div>
        </div>
      )}
      {touched && <p className="action-touched">{touched.what} <Visible>{touched.names.join(", ")}</Visible></p>}
      <details open={!command}>
        <summary>All arguments for <code><Visible>{outcome.tool_name}</Visible></code></summary>
        <Json value={args} />
      </details>
      <p>Look before it is repeated, and tell what you found. Your next message in <Taking outcome={outcome} /> takes this off the list.</p>
      <Link className="button" href={`/chats/${outcome.chat_id}#m${outcome.message_id}`}>Look at it in the chat</Link>
    </div>
  );
}

/** The chat whose messages count: a message to an agent leaves its calls on the list. */
function Taking({ outcome }: { outcome: UnknownOutcome }) {
  const isOfAgent = outcome.root_chat_id && outcome.root_chat_id !== outcome.chat_id;
  return isOfAgent ? <Link href={`/chats/${outcome.root_chat_id}`}>the chat that this agent works for</Link> : "that chat";
}
