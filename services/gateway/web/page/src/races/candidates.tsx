/** The candidates of a race: their figures in a table, and one thing of all of them side by side. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Model } from "../api/types.ts";
import { cutWords } from "../cards/outcome.ts";
import { ForkChanges, ForkExtent } from "../forks/changes.tsx";
import { changesOf } from "../forks/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { Button } from "../ui/button.tsx";
import { duration, money } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { bestOf, type Candidate, hasEnded, type Race, shownName } from "./race.ts";

export type View = "answer" | "changes" | "check";

const LOOKS: Record<string, string> = { running: "is-accent", starting: "", done: "", failed: "is-bad" };

/** The changes that a candidate had made when it came to this state. */
function useChanges(candidate: Candidate) {
  return useQuery({
    ...changesOf(candidate.chat_id, `${candidate.status} ${candidate.duration_ms}`),
    enabled: hasEnded(candidate),
  });
}

interface CompareProps {
  race: Race;
  models: readonly Model[];
}

export function Figures({ race, models }: CompareProps) {
  const fastest = bestOf(race.candidates, (each) => each.duration_ms);
  const cheapest = bestOf(race.candidates, (each) => each.cost_micros);
  return (
    <Table
      label="Figures of the candidates"
      rows={race.candidates}
      keyOf={(row) => String(row.position)}
      empty={{ title: "No candidates", text: "Read the race again in a moment." }}
      columns={[
        {
          title: "Model",
          cell: (row) => (
            <>
              <span className="cell-main"><Visible>{shownName(row, models)}</Visible></span>{" "}
              {race.applied_chat_id === row.chat_id && <span className="badge is-accent">applied</span>}
            </>
          ),
        },
        { title: "Status", cell: (row) => <Status candidate={row} isCancelled={race.cancelled_at !== null} /> },
        { title: "Check", cell: (row) => <CheckBadge candidate={row} hasCheck={Boolean(race.check_command)} /> },
        { title: "Changes", cell: (row) => <Extent candidate={row} /> },
        { title: "Time", isNumber: true, cell: (row) => <Figure words={duration(row.duration_ms)} isBest={fastest.has(row.position)} praise="fastest" /> },
        { title: "Cost", isNumber: true, cell: (row) => <Figure words={money(row.cost_micros)} isBest={cheapest.has(row.position)} praise="cheapest" /> },
      ]}
    />
  );
}

function Figure({ words, isBest, praise }: { words: string; isBest: boolean; praise: string }) {
  if (!isBest) return words;
  return <span className="race-best" title={praise}>{words}<span className="visually-hidden"> ({praise})</span></span>;
}

function Status({ candidate, isCancelled }: { candidate: Candidate; isCancelled: boolean }) {
  const status = candidate.status ?? "starting";
  const words = isCancelled && status === "starting" ? "not started" : status;
  return <span className={`badge ${LOOKS[status] ?? ""}`}>{words}</span>;
}

function CheckBadge({ candidate, hasCheck }: { candidate: Candidate; hasCheck: boolean }) {
  if (!hasCheck) return "none";
  if (!candidate.check) return hasEnded(candidate) ? "not checked" : "";
  return candidate.check.passed
    ? <span className="badge is-accent">passed</span>
    : <span className="badge is-bad">failed</span>;
}

function Extent({ candidate }: { candidate: Candidate }) {
  const changes = useChanges(candidate);
  if (changes.error) return "not known";
  return changes.data ? <ForkExtent report={changes.data} /> : hasEnded(candidate) ? "…" : "";
}

interface CardsProps extends CompareProps {
  view: View;
  onApply: (candidate: Candidate) => void;
}

export function Candidates({ race, models, view, onApply }: CardsProps) {
  return (
    <ul className="race-candidates">
      {race.candidates.map((each) => (
        <li key={each.position} className={`card race-candidate${race.applied_chat_id === each.chat_id ? " is-applied" : ""}`} aria-label={shownName(each, models)}>
          <header className="card-head">
            <h2 className="section-part-title"><Visible>{shownName(each, models)}</Visible></h2>
            <Status candidate={each} isCancelled={race.cancelled_at !== null} />
            {race.applied_chat_id === each.chat_id && <span className="badge is-accent">applied</span>}
          </header>
          {each.error && <p className="field-problem">{each.error}</p>}
          {view === "answer" && <Answer candidate={each} />}
          {view === "changes" && <Changes candidate={each} />}
          {view === "check" && <Check candidate={each} command={race.check_command} />}
          <div className="table-actions">
            <Link className="button is-small" href={`/chats/${each.chat_id}`}>Open its chat</Link>
            <Button small look="primary" disabled={!hasEnded(each)} onClick={() => onApply(each)}>
              {race.applied_chat_id === each.chat_id ? "Apply again" : "Apply"}
            </Button>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Answer({ candidate }: { candidate: Candidate }) {
  if (!candidate.answer) {
    return <p className="panel-note">{hasEnded(candidate) ? "It gave no answer." : "It is at work. Its last answer is shown here."}</p>;
  }
  const cut = cutWords(candidate.cut);
  return (
    <>
      <Markdown text={candidate.answer} />
      {cut && <p className="message-ending">{cut}</p>}
    </>
  );
}

function Changes({ candidate }: { candidate: Candidate }) {
  const changes = useChanges(candidate);
  if (!hasEnded(candidate)) return <p className="panel-note">It is at work. Its changes are shown when it has ended.</p>;
  return (
    <Loaded query={changes} what="difference">
      {(report) => <ForkChanges report={report} />}
    </Loaded>
  );
}

function Check({ candidate, command }: { candidate: Candidate; command: string | null }) {
  if (!command) return <p className="panel-note">The race has no check.</p>;
  if (!candidate.check) return <p className="panel-note">{hasEnded(candidate) ? "It was not checked yet." : "It is at work. The check runs when it has ended."}</p>;
  const { passed, exit_code: code, output } = candidate.check;
  return (
    <>
      <p>
        <span className={`badge ${passed ? "is-accent" : "is-bad"}`}>{passed ? "passed" : "failed"}</span>{" "}
        <span className="race-facts">{code === null ? "It did not end by itself." : `exit code ${code}`}</span>
      </p>
      {output ? <pre className="preview" tabIndex={0} aria-label="What the check printed"><Visible>{output}</Visible></pre> : <p className="panel-note">It printed nothing.</p>}
    </>
  );
}
