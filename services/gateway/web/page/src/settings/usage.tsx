/** What one used and spent oneself. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { Loaded } from "../forms/loaded.tsx";
import { ahead, moment, money } from "../ui/format.ts";
import { PeriodField } from "../usage/period.tsx";
import { type Period, spanOf, USUAL } from "../usage/span.ts";
import { spend } from "../usage/queries.ts";
import { UsageRows, UsageTotals } from "../usage/totals.tsx";

function usage(period: Period) {
  return queryOptions({
    queryKey: ["me", "usage", period],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/me/usage", { params: { query: { ...spanOf(period) } }, signal })),
  });
}

export default function UsageSection() {
  const [period, setPeriod] = useState<Period>(USUAL);
  return (
    <>
      <Loaded query={useQuery(spend)} what="limit">
        {({ limit, spent_micros: spent, resets_at: resets }) =>
          limit ? (
            <div className="section-part">
              <p>
                {money(spent)} of {money(limit.limit_micros)} are used this {limit.period}
                {resets ? `; it begins anew ${ahead(resets, Date.now())}, on ${moment(resets)}` : ""}.
              </p>
              <meter className="meter" min={0} max={Math.max(limit.limit_micros, 1)} value={spent}>
                {money(spent)}
              </meter>
            </div>
          ) : null
        }
      </Loaded>
      <div className="section-part">
        <PeriodField value={period} onChange={setPeriod} />
        <Loaded query={useQuery(usage(period))} what="usage">
          {(data) => (
            <>
              <UsageTotals totals={data.totals} />
              <h3 className="section-part-title">By model</h3>
              <UsageRows label="Usage by model" first="Model" rows={data.by_model} />
              <h3 className="section-part-title">By chat</h3>
              <UsageRows label="Usage by chat" first="Chat" rows={data.by_chat} hrefOf={(id) => `/chats/${id}`} />
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}
