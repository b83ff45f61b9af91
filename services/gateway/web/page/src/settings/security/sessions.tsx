/** Where one is signed in. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { ago } from "../../ui/format.ts";
import { browserWords, METHODS } from "./session-words.ts";

const sessions = queryOptions({
  queryKey: ["me", "sessions"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/sessions", { signal })),
});

async function end(sessionId: string): Promise<void> {
  const params = { path: { session_id: sessionId } };
  await answered(api.DELETE("/api/v1/me/sessions/{session_id}", { params }));
  await queryClient.invalidateQueries({ queryKey: sessions.queryKey });
}

async function signOutEverywhere(): Promise<void> {
  await answered(api.POST("/api/v1/sign-out", { body: { everywhere: true } }));
  location.assign("/sign-in");
}

export default function SessionsSection() {
  const now = Date.now();
  return (
    <div className="section-part">
      <Loaded query={useQuery(sessions)} what="list of sessions">
        {(data) => (
          <Table
            label="Sessions"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No sessions", text: "You act with a key, not with a session." }}
            columns={[
              {
                title: "Browser",
                cell: (row) => (
                  <>
                    <span className="cell-main" title={row.user_agent}>{browserWords(row.user_agent)}</span>
                    <span className="cell-side">{row.address}</span>
                  </>
                ),
              },
              { title: "Signed in by", cell: (row) => (row.method ? METHODS[row.method] : "Unknown") },
              { title: "Last seen", cell: (row) => ago(row.last_seen_at, now) },
              {
                title: "",
                cell: (row) =>
                  row.is_current ? (
                    <span className="badge is-accent">This one</span>
                  ) : (
                    <ConfirmButton
                      label="End"
                      title="End this session?"
                      text="That browser has to sign in again."
                      done="The session has ended."
                      onConfirm={() => end(row.id)}
                    />
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      <div>
        <ConfirmButton
          label="Sign out everywhere"
          title="Sign out everywhere?"
          text="All sessions end, this one as well. Keys go on working."
          onConfirm={signOutEverywhere}
        />
      </div>
    </div>
  );
}
