/** What happens right now below the last message: work, a retry, an error, a broken connection. */
import { useEffect, useState } from "react";
import type { ChatError, RetryState } from "../api/types.ts";
import { wordsOf } from "../api/problem.ts";
import type { ChatView } from "../stream/chat-store.ts";
import { Button } from "../ui/button.tsx";
import { waiting } from "../ui/format.ts";
import { Notice } from "../ui/states.tsx";
import { complain } from "../ui/toasts.tsx";
import { errorWords } from "./errors.ts";

interface Props {
  view: ChatView;
  hasTail: boolean;
  /** Runs the failed turn again; absent if that cannot be done, or not by this person. */
  onAgain?: (() => Promise<void>) | undefined;
}

export function LiveState({ view, hasTail, onAgain }: Props) {
  const { chat } = view;
  const isBusy = chat.status === "running" || chat.status === "interrupting";
  if (chat.ended) return <Notice kind="bad" alert title="This chat is no longer there">{chat.ended}</Notice>;
  if (view.link === "refused" && view.problem) {
    return <Notice kind="bad" alert title="This chat is no longer followed">{wordsOf(view.problem)}</Notice>;
  }
  if (chat.retry && isBusy) return <Retry retry={chat.retry} />;
  if (view.isInterrupted) {
    return <Notice kind="warn" icon="globe" title="Connecting again">The connection broke. The agent goes on; what you missed comes with the connection.</Notice>;
  }
  if (chat.status === "error" && chat.error) return <Failed error={chat.error} onAgain={onAgain} />;
  if (chat.status === "interrupting") return <Working words="Stopping…" />;
  if (chat.status === "running" && chat.placeInLine > 0) {
    return <Working words={`Number ${chat.placeInLine} in line for a free worker`} />;
  }
  if (chat.status === "running" && !hasTail) return <Working words="Working" />;
  return null;
}

function Working({ words }: { words: string }) {
  return (
    <p className="working">
      <span className="working-dots" aria-hidden="true"><i /><i /><i /></span>
      {words}
    </p>
  );
}

function Retry({ retry }: { retry: RetryState }) {
  const provider = retry.error?.provider;
  const title = provider ? `${provider.charAt(0).toUpperCase()}${provider.slice(1)} is temporarily unavailable` : "The model is temporarily unavailable";
  return (
    <Notice kind="warn" icon="clock" title={title}>
      {retry.error?.message} Attempt {retry.attempt}. <Countdown key={retry.retrying_at} delayMs={retry.delay_ms} />
    </Notice>
  );
}

/** Count down from the server's delay; the clocks of both sides may differ. */
function Countdown({ delayMs }: { delayMs: number }) {
  const [end] = useState(() => performance.now() + delayMs);
  const [left, setLeft] = useState(delayMs);
  useEffect(() => {
    const timer = setInterval(() => setLeft(Math.max(0, end - performance.now())), 100);
    return () => clearInterval(timer);
  }, [end]);
  return <span className="countdown">Trying again {left > 0 ? `in ${waiting(left)}` : "now"}.</span>;
}

function Failed({ error, onAgain }: { error: ChatError; onAgain: Props["onAgain"] }) {
  const { title, remedy } = errorWords(error);
  const [isBusy, setBusy] = useState(false);
  async function again(): Promise<void> {
    setBusy(true);
    try {
      await onAgain?.();
    } catch (problem) {
      complain(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Notice
      kind="bad"
      alert
      title={title}
      actions={
        onAgain && (
          <Button small disabled={isBusy} title="Run your last message again, with the files as they were before it" onClick={() => void again()}>
            Try again
          </Button>
        )
      }
    >
      <p>{error.message} {remedy}</p>
      {(error.detail || error.status_code) && (
        <p className="error-detail">{error.status_code ? `HTTP ${error.status_code}. ` : ""}{error.detail}</p>
      )}
    </Notice>
  );
}
