/** Tokens and money, as a row of figures and as a table. */
import { Link } from "wouter";
import type { components } from "../api/schema.d.ts";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { count, money, plural } from "../ui/format.ts";

type Totals = components["schemas"]["UsageTotals"];
type Row = components["schemas"]["UsageRow"];

export function UsageTotals({ totals }: { totals: Totals }) {
  const figures: readonly (readonly [string, string])[] = [
    ["Cost", money(totals.cost_micros)],
    ["Calls", count(totals.priced_calls + totals.unpriced_calls)],
    ["Input tokens", count(totals.input_tokens)],
    ["Output tokens", count(totals.output_tokens)],
    ["From the cache", count(totals.cache_read_tokens)],
  ];
  return (
    <>
      <dl className="figures">
        {figures.map(([name, value]) => (
          <div key={name} className="figure">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {totals.unpriced_calls > 0 && (
        <p className="field-hint">
          {plural(totals.unpriced_calls, "call")} had no known price and {totals.unpriced_calls === 1 ? "is" : "are"} not in the cost.
        </p>
      )}
      {totals.estimated_calls > 0 && (
        <p className="field-hint">
          {plural(totals.estimated_calls, "call")} ({money(totals.estimated_cost_micros)}) {totals.estimated_calls === 1 ? "is an estimate" : "are estimates"}:
          the provider did not report {totals.estimated_calls === 1 ? "it" : "them"}.
        </p>
      )}
    </>
  );
}

interface UsageRowsProps {
  label: string;
  first: string;
  rows: readonly Row[];
  hrefOf?: (id: string) => string;
  /** Shows the usage of one row by model and chat. */
  onChoose?: (id: string) => void;
}

export function UsageRows({ label, first, rows, hrefOf, onChoose }: UsageRowsProps) {
  return (
    <Table
      label={label}
      rows={rows}
      keyOf={(row) => row.id}
      empty={{ title: "Nothing was used", text: "There were no calls in this period." }}
      columns={[
        {
          title: first,
          cell: (row) => {
            const name = row.name || row.id;
            return (
              <>
                {hrefOf ? (
                  <Link href={hrefOf(row.id)}>{name}</Link>
                ) : onChoose ? (
                  <Button small title={`Usage of ${name} by model and chat`} onClick={() => onChoose(row.id)}>{name}</Button>
                ) : (
                  name
                )}
                {row.provider_display_name && <span className="cell-side">{row.provider_display_name}</span>}
              </>
            );
          },
        },
        { title: "Calls", isNumber: true, cell: (row) => count(row.totals.priced_calls + row.totals.unpriced_calls) },
        { title: "Input", isNumber: true, cell: (row) => count(row.totals.input_tokens) },
        { title: "Output", isNumber: true, cell: (row) => count(row.totals.output_tokens) },
        { title: "Without a price", isNumber: true, cell: (row) => (row.totals.unpriced_calls ? count(row.totals.unpriced_calls) : "") },
        {
          title: "Cost",
          isNumber: true,
          cell: (row) => (row.totals.priced_calls || !row.totals.unpriced_calls ? money(row.totals.cost_micros) : "no price"),
        },
      ]}
    />
  );
}
