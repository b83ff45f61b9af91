/** What everyone used in a period. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Button } from "../ui/button.tsx";
import { PeriodField } from "../usage/period.tsx";
import { type Period, spanOf, USUAL } from "../usage/span.ts";
import { UsageRows, UsageTotals } from "../usage/totals.tsx";
import { users } from "./queries.ts";

function everyone(period: Period) {
  return queryOptions({
    queryKey: ["admin", "usage", period],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/usage", { params: { query: { ...spanOf(period), limit: 200 } }, signal }),
      ),
  });
}

function ofUser(userId: string, period: Period) {
  return queryOptions({
    queryKey: ["admin", "usage", period, userId],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/users/{user_id}/usage", {
          params: { path: { user_id: userId }, query: { ...spanOf(period) } },
          signal,
        }),
      ),
  });
}

export default function UsageSection() {
  const [period, setPeriod] = useState<Period>(USUAL);
  const [userId, setUserId] = useState("");
  const names = new Map((useQuery(users).data?.items ?? []).map((each) => [each.id, each.login]));
  return (
    <div className="section-part">
      <PeriodField value={period} onChange={setPeriod} />
      {userId ? (
        <OneUser userId={userId} name={names.get(userId) ?? userId} period={period} onBack={() => setUserId("")} />
      ) : (
        <Everyone period={period} names={names} onChoose={setUserId} />
      )}
    </div>
  );
}

interface EveryoneProps {
  period: Period;
  names: ReadonlyMap<string, string>;
  onChoose: (userId: string) => void;
}

function Everyone({ period, names, onChoose }: EveryoneProps) {
  return (
    <Loaded query={useQuery(everyone(period))} what="usage">
      {({ items }) => (
        <UsageRows
          label="Usage by user"
          first="User"
          rows={items.map((each) => ({ ...each, name: each.name || (names.get(each.id) ?? null) }))}
          onChoose={onChoose}
        />
      )}
    </Loaded>
  );
}

interface OneUserProps {
  userId: string;
  name: string;
  period: Period;
  onBack: () => void;
}

function OneUser({ userId, name, period, onBack }: OneUserProps) {
  return (
    <Loaded query={useQuery(ofUser(userId, period))} what="usage">
      {(data) => (
        <>
          <div className="section-bar">
            <Button small icon="back" onClick={onBack}>
              Everyone
            </Button>
            <h3 className="section-part-title">{name}</h3>
          </div>
          <UsageTotals totals={data.totals} />
          <h3 className="section-part-title">By model</h3>
          <UsageRows label="Usage by model" first="Model" rows={data.by_model} />
          <h3 className="section-part-title">By chat</h3>
          <UsageRows label="Usage by chat" first="Chat" rows={data.by_chat} />
        </>
      )}
    </Loaded>
  );
}
