/** The turns of a chat for those who look for a cause: calls, tokens, cost, model, time and errors. */
import "./turns.css";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { answered, api } from "../api/client.ts";
import { models } from "../api/queries.ts";
import { WORDS } from "../cards/outcome.ts";
import type { Chat, ChatError } from "../api/types.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import type { TabProps } from "../panel/panel.tsx";
import { errorWords } from "../timeline/errors.ts";
import { Button } from "../ui/button.tsx";
import { count, duration, money, plural } from "../ui/format.ts";
import { modelLabel } from "../models/model-label.ts";
import { saveJson } from "../ui/save.ts";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { inTokens, type Outcome, type Run, type RunStatus, runsOf, type Sums } from "./runs.ts";

const TimesDialog = lazy(() => import("./times-dialog.tsx"));
const PAGE_MESSAGES = 100;
const LOOK_AGAIN_MS = 3_000;

const STATUS: Record<RunStatus, readonly [string, string]> = {
  running: ["running", "is-accent"],
  waits: ["waits", "is-warn"],
  failed: ["failed", "is-bad"],
  interrupted: ["interrupted", "is-warn"],
  cut: ["cut", "is-warn"],
  done: ["done", ""],
  unanswered: ["no answer", "is-warn"],
};
const ENDINGS: Record<string, string> = {
  stop: "finished",
  tool_calls: "to call tools",
  length: "at its length limit",
  content_filter: "blocked by the provider",
  paused: "paused by the provider",
  interrupted: "interrupted",
  other: "for another reason",
};
const OUTCOMES: Record<Outcome, string> = { done: "", running: "is-accent", failed: "is-bad", cancelled: "is-warn", unknown: "is-warn" };

export default function Debug({ chat }: TabProps) {
  const isAtWork = chat.status === "running" || chat.status === "interrupting";
  const query = useInfiniteQuery({
    queryKey: ["turn-runs", chat.id],
    queryFn: ({ pageParam, signal }) => {
      const params = { path: { chat_id: chat.id }, query: { limit: PAGE_MESSAGES, ...(pageParam ? { before_id: pageParam } : {}) } };
      return answered(api.GET("/api/v1/chats/{chat_id}/messages", { params, signal }));
    },
    initialPageParam: 0,
    getNextPageParam: (page) => (page.has_more ? page.messages.at(-1)?.id : undefined),
    refetchInterval: isAtWork ? LOOK_AGAIN_MS : false,
  });
  const { refetch } = query;
  useEffect(() => void refetch(), [refetch, chat.status]);
  return (
    <Loaded query={query} what="turns of the chat">
      {({ pages }) => {
        const runs = runsOf(pages.flatMap((page) => page.messages), chat);
        return (
          <div className="panel-part">
            <Problems chat={chat} />
            {runs.length === 0 && <p className="panel-note">{query.hasNextPage ? "No turn begins in what is loaded." : "There are no turns yet."}</p>}
            {runs.length > 0 && (
              <div className="section-bar">
                <p className="panel-note">{plural(runs.length, "turn")}, the newest first</p>
                <Button small icon="file" onClick={() => saveJson(`chat-${chat.id}-turns.json`, runs.map(exported))}>Save all as JSON</Button>
              </div>
            )}
            {runs.map((run, place) => <OneRun key={run.key} run={run} isOpen={place === 0} />)}
            {query.hasNextPage && (
              <Button small disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Earlier turns</Button>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

/** What is saved of a turn: its figures, and its messages as the API has them. */
function exported({ prompt: _, key: __, ...run }: Run): object {
  return run;
}

function OneRun({ run, isOpen }: { run: Run; isOpen: boolean }) {
  const [isTimed, showTimes] = useState(false);
  const nameOf = useModelNames();
  const [words, look] = STATUS[run.status];
  const first = run.messages[0]!;
  const names = [...new Set(run.steps.map((each) => nameOf(each.modelId)))];
  return (
    <details className="panel-file turn-run" open={isOpen}>
      <summary>
        <span className={`badge ${look}`}>{words}</span>
        <span className="turn-prompt"><Visible>{run.prompt || "Without text"}</Visible></span>
        <span className="card-note">{[names.join(", "), tokens(run.sums), cost(run.sums), duration(run.totalMs)].filter(Boolean).join(" · ")}</span>
      </summary>
      <div className="turn-run-body">
        <Table
          label="Calls of the model"
          rows={run.steps}
          keyOf={(row) => String(row.messageId)}
          empty={{ title: "No answer is stored", text: "The model was not called, has not answered yet, or failed." }}
          columns={[
            { title: "Model", cell: (row) => <Call name={nameOf(row.modelId)} isSummary={row.kind === "summary"} isFallback={row.usage?.is_fallback ?? false} /> },
            { title: "In", isNumber: true, cell: ({ usage }) => usage && <Tokens all={inTokens(usage)} some={usage.cache_read_tokens} words="cached" /> },
            { title: "Out", isNumber: true, cell: ({ usage }) => usage && <Tokens all={usage.output_tokens} some={usage.reasoning_tokens} words="thinking" /> },
            { title: "Cost", isNumber: true, cell: (row) => (row.usage ? price(row.usage.cost_micros) : "") },
            { title: "Time", isNumber: true, cell: (row) => duration(row.modelMs) },
            { title: "Ended", cell: (row) => ENDINGS[row.finishReason ?? ""] ?? "" },
          ]}
        />
        {run.tools.length > 0 && (
          <Table
            label="Calls of tools"
            rows={run.tools}
            keyOf={(row) => row.key}
            empty={{ title: "", text: "" }}
            columns={[
              { title: "Tool", cell: (row) => <code><Visible>{row.name}</Visible></code> },
              { title: "Outcome", cell: (row) => <span className={`badge ${OUTCOMES[row.outcome]}`}>{WORDS[row.outcome]}</span> },
              { title: "Time", isNumber: true, cell: (row) => (row.durationMs === null ? "not ended" : duration(row.durationMs)) },
            ]}
          />
        )}
        <div className="section-bar">
          <Button small icon="clock" onClick={() => showTimes(true)}>Time line</Button>
          <Button small icon="file" onClick={() => saveJson(`turn-${first.chat_id}-${first.id}.json`, exported(run))}>Save as JSON</Button>
        </div>
      </div>
      {isTimed && (
        <Suspense fallback={null}>
          <TimesDialog messages={run.messages} messageId={first.id} onClose={() => showTimes(false)} />
        </Suspense>
      )}
    </details>
  );
}

function Call({ name, isSummary, isFallback }: { name: string; isSummary: boolean; isFallback: boolean }) {
  return (
    <>
      {name} {isSummary && <span className="badge">summary</span>} {isFallback && <span className="badge is-warn">fallback</span>}
    </>
  );
}

/** Tokens, and how many of them are of a kind. */
function Tokens({ all, some, words }: { all: number; some: number; words: string }) {
  return (
    <>
      {count(all)}
      {some > 0 && <span className="cell-side">{count(some)} {words}</span>}
    </>
  );
}

/** Why the last turn failed, or why its model is called again. */
function Problems({ chat }: { chat: Chat }) {
  const { last_error: failed, retry } = chat;
  if (failed) return <Problem error={failed} attempts={failed.attempts ?? 0} />;
  if (!retry?.error) return null;
  return (
    <Problem error={retry.error} attempts={retry.attempt}>
      {retry.retrying_at && <p>The next attempt is at {new Date(retry.retrying_at).toLocaleTimeString()}.</p>}
    </Problem>
  );
}

function Problem({ error, attempts, children }: { error: ChatError; attempts: number; children?: ReactNode }) {
  const { title, remedy } = errorWords(error);
  const facts = [error.provider, error.kind?.replaceAll("_", " "), error.status_code ? `HTTP ${error.status_code}` : "", attempts ? plural(attempts, "attempt") : ""];
  return (
    <Notice kind="bad" title={title}>
      <p><Visible>{error.message}</Visible></p>
      <p className="card-note">{facts.filter(Boolean).join(" · ")}</p>
      {error.detail && <pre className="turn-detail" tabIndex={0} aria-label="What the provider said"><Visible>{error.detail}</Visible></pre>}
      {children}
      {(error.next_step || remedy) && <p>{error.next_step || remedy}</p>}
    </Notice>
  );
}

function useModelNames(): (modelId: string | null) => string {
  const known = useQuery(models).data?.items ?? [];
  return (modelId) => {
    const found = known.find((each) => each.id === modelId);
    return found ? modelLabel(found, known) : modelId || "Demo model";
  };
}

function tokens({ inTokens: into, outTokens }: Sums): string {
  return into + outTokens === 0 ? "" : `${count(into)} in, ${count(outTokens)} out`;
}

function cost({ costMicros, unpricedCalls }: Sums): string {
  if (costMicros === null) return unpricedCalls ? "unknown price" : "";
  return unpricedCalls ? `${money(costMicros)} and ${plural(unpricedCalls, "call")} without a price` : money(costMicros);
}

function price(micros: number | null): string {
  return micros === null ? "unknown" : money(micros);
}
