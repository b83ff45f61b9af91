/** One's own workspaces: what runs, until when, and what may still be made. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import { plural } from "../ui/format.ts";
import { WorkspaceList } from "../workspaces/list.tsx";
import { titleOf, wordsOf } from "./quota-words.ts";

const KEY = ["workspaces", "own"];
const quota = queryOptions({
  queryKey: ["quota"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/quota", { signal })),
});
const own = queryOptions({
  queryKey: KEY,
  queryFn: ({ signal }) =>
    answered(api.GET("/api/v1/workspaces", { params: { query: { limit: 200 } }, signal })),
});

export default function WorkspacesSection() {
  return (
    <>
      <Loaded query={useQuery(quota)} what="quota">
        {(data) => (
          <dl className="figures section-part">
            {data.items.map((each) => (
              <div key={each.dimension ?? ""} className="figure" title={each.how_to_free}>
                <dt>{titleOf(each)}</dt>
                <dd>{wordsOf(each)}</dd>
              </div>
            ))}
          </dl>
        )}
      </Loaded>
      <Loaded query={useQuery(own)} what="list of workspaces">
        {(data) => (
          <WorkspaceList
            rows={data.items}
            empty={`A chat makes one when it needs one. ${plural(0, "workspace")} so far.`}
            onChanged={() => queryClient.invalidateQueries({ queryKey: KEY })}
          />
        )}
      </Loaded>
    </>
  );
}
