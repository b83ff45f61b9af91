/** A second opinion: asked for, given, refused because of the limit, or failed. */
import { Markdown } from "../markdown/markdown.tsx";
import { count, money, plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { Card } from "./card.tsx";
import { argsOf, type CardProps, cutWords, record, string } from "./outcome.ts";

const LABELS = {
  running: "Asks the advisor",
  advice: "Asked the advisor",
  limit_reached: "Advisor limit reached",
  error: "The advisor could not help",
} as const;

export type AdvisorState = keyof typeof LABELS;

/** Tell the state of a call from how it stands and from its result. */
export function advisorState({ result, standing }: Pick<CardProps, "result" | "standing">): AdvisorState {
  if (!result?.outcome) return standing === "running" || standing === "waiting" ? "running" : "error";
  const { type } = record(result.result);
  return result.outcome === "done" && (type === "advice" || type === "limit_reached") ? type : "error";
}

/** A text that ends as a sentence does, so that another one can follow. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export function AdvisorCard({ call, result, standing }: CardProps) {
  const told = record(result?.result);
  const usage = record(told.usage);
  const state = advisorState({ result, standing });
  const advice = string(told.advice) || (state === "running" ? string(result?.result_delta) : "");
  return (
    <Card
      icon={state === "limit_reached" || state === "error" ? "warn" : "spark"}
      standing={standing}
      isOpen={state === "running" || state === "error"}
      label={LABELS[state]}
      facts={typeof usage.cost_micros === "number" && usage.cost_micros > 0 ? money(usage.cost_micros) : null}
    >
      <p className="advisor-question"><Visible>{string(argsOf(call).question)}</Visible></p>
      {advice && <Markdown text={advice} />}
      {cutWords(told.cut) && <p className="message-ending">{cutWords(told.cut)}</p>}
      {state === "limit_reached" && <p className="card-note">{string(told.message)}</p>}
      {state === "error" && (
        <p className="field-problem">
          {sentence(string(told.error) || "There is no advice.")} {string(told.hint)}
        </p>
      )}
      {state === "advice" && (
        <p className="card-note">
          {string(told.advisor_model)}
          {typeof usage.output_tokens === "number" && `, ${count(usage.output_tokens)} tokens`}
          {typeof told.remaining_uses === "number" && `, ${plural(told.remaining_uses, "more question")} in this turn`}
        </p>
      )}
    </Card>
  );
}
