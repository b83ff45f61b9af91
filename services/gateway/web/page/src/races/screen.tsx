/** A race: what several models made of one task, side by side. */
import "./races.css";
import "../cards/cards.css";
import "../panel/panel.css";
import "../timeline/timeline.css";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import { models as modelsQuery, queryClient } from "../api/queries.ts";
import { randomKey } from "../api/transport.ts";
import type { Model } from "../api/types.ts";
import { ApplyDialog } from "../forks/apply-dialog.tsx";
import type { Report, Strategy } from "../forks/reports.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { StateScreen } from "../shell/screen-head.tsx";
import { sideShown } from "../shell/side-state.ts";
import { announce } from "../ui/announce.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { ago, money } from "../ui/format.ts";
import { Failure, Notice, Skeleton } from "../ui/states.tsx";
import { useStored } from "../ui/stores/stored.ts";
import { Visible } from "../ui/visible.tsx";
import { wordsOf } from "../api/problem.ts";
import { known, race } from "./queries.ts";
import { Candidates, Figures, type View } from "./candidates.tsx";
import { type Candidate, isOver, type Race, shownName, uncheckedOf } from "./race.ts";

const VIEWS: readonly (readonly [View, string])[] = [
  ["answer", "Answers"],
  ["changes", "Changes"],
  ["check", "Checks"],
];

export default function RaceScreen({ raceId }: { raceId: string }) {
  const models = useQuery(modelsQuery).data?.items ?? [];
  const query = useQuery(race(raceId));
  if (query.error && !query.data) {
    return (
      <StateScreen>
        <Failure error={query.error} what="race" level={1} onRetry={() => void query.refetch()} />
      </StateScreen>
    );
  }
  return (
    <main className="screen race">
      {query.data ? <Compared race={query.data} models={models} /> : <Skeleton />}
    </main>
  );
}

function Compared({ race: found, models }: { race: Race; models: readonly Model[] }) {
  const [view, setView] = useStored<View>("parley.race.view", "answer");
  const [applying, setApplying] = useState<Candidate>();
  const checks = useChecks(found);
  const params = { path: { race_id: found.id } };
  const over = isOver(found);
  useEffect(() => {
    if (over) announce("All candidates of the race have ended.");
  }, [over]);

  async function apply(position: number, strategy: Strategy): Promise<Report> {
    const done = await answered(
      api.POST("/api/v1/races/{race_id}/apply", {
        params: { ...params, header: { "Idempotency-Key": randomKey() } },
        body: { position, strategy },
      }),
    );
    know(done.race);
    if (!done.report) throw new Error("The server did not say what was applied. Read the race again.");
    return done.report;
  }

  return (
    <>
      <header>
        <div className="screen-head">
          <IconButton icon="menu" label="Chats" className="only-phone" onClick={() => sideShown.set(true)} />
          <h1 className="screen-title"><Visible>{found.title || "Race"}</Visible></h1>
        </div>
        <p className="race-facts">
          {over ? (found.cancelled_at ? "Cancelled" : "All have ended") : "At work"} · started {ago(found.created_at, Date.now())} ·{" "}
          {money(found.candidates.reduce((sum, each) => sum + each.cost_micros, 0))} ·{" "}
          <Link href={`/chats/${found.id}`}>chat of the race</Link> · <Link href="/races">all races</Link>
          {found.check_command && <> · check: <code><Visible>{found.check_command}</Visible></code></>}
        </p>
      </header>
      {checks.error !== null && (
        <Notice kind="bad" alert title="The checks could not be run" actions={<Button small onClick={checks.retry}>Retry</Button>}>
          {wordsOf(checks.error)}
        </Notice>
      )}
      {checks.isBusy && <p className="race-facts" role="status">The check runs…</p>}
      <Figures race={found} models={models} />
      <div className="section-bar">
        <div className="race-views" role="group" aria-label="What to compare">
          {VIEWS.map(([name, words]) => (
            <Button key={name} small className="toggle" aria-pressed={view === name} onClick={() => setView(name)}>{words}</Button>
          ))}
        </div>
        {!over && !found.cancelled_at && (
          <ConfirmButton
            label="Cancel the race"
            title="Cancel this race?"
            text="All candidates that run are stopped. What they have done so far stays."
            done="The race is cancelled."
            onConfirm={async () => know(await answered(api.POST("/api/v1/races/{race_id}/cancel", { params, body: {} })))}
          />
        )}
      </div>
      <Candidates race={found} models={models} view={view} onApply={setApplying} />
      {applying && (
        <ApplyDialog
          title={`Apply the work of ${shownName(applying, models)}`}
          text={`Its changes are written into the workspace of the race${found.workspace_id ? ", which is the one that you chose" : ""}. The chat of the race goes on there.`}
          apply={(strategy) => apply(applying.position, strategy)}
          onClose={() => setApplying(undefined)}
        />
      )}
    </>
  );
}

function know(found: Race | null): void {
  if (found) queryClient.setQueryData(race(found.id).queryKey, found);
}

interface Checks {
  isBusy: boolean;
  error: unknown;
  retry: () => void;
}

/** Have candidates checked as they end, once each; a failure waits for a person. */
function useChecks(found: Race): Checks {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const due = uncheckedOf(found);
  useEffect(() => {
    if (!due || isBusy || error !== null) return;
    setBusy(true);
    known(found.id, answered(api.POST("/api/v1/races/{race_id}/check", { params: { path: { race_id: found.id } }, body: {} })))
      .catch(setError)
      .finally(() => setBusy(false));
  }, [due, isBusy, error, found.id]);
  return { isBusy, error, retry: () => setError(null) };
}
