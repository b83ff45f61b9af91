/** All workspaces, and the machines that host them. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import { WorkspaceList } from "../workspaces/list.tsx";
import { users } from "./queries.ts";

const all = queryOptions({
  queryKey: ["admin", "workspaces"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/workspaces", { params: { query: { limit: 200 } }, signal })),
});

export default function WorkspacesSection() {
  const owners = new Map((useQuery(users).data?.items ?? []).map((each) => [each.id, each.login]));
  return (
    <Loaded query={useQuery(all)} what="list of workspaces">
      {(data) => (
        <WorkspaceList
          rows={data.items}
          owners={owners}
          empty="Chats make one when they need one."
          onChanged={() => queryClient.invalidateQueries({ queryKey: all.queryKey })}
        />
      )}
    </Loaded>
  );
}
