/** The tools of an MCP server: which are offered, and which wait because their definition changed. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/states.tsx";
import { complain, say } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { JsonTree } from "../json-tree.tsx";
import type { Server } from "../selection.ts";
import { refreshServers } from "../servers.ts";

type Tool = components["schemas"]["ServerTool"];
type ToolList = components["schemas"]["ListServerToolsResponse"];

function tools(serverId: string) {
  return queryOptions({
    queryKey: ["mcp", "tools", serverId],
    queryFn: ({ signal }) => allTools(serverId, signal),
  });
}

/** Read all pages of the tools of a server; what is said of the server is that of the last page. */
export async function allTools(serverId: string, signal: AbortSignal): Promise<ToolList> {
  const items: Tool[] = [];
  for (let cursor = ""; ; ) {
    const query = { limit: 500, ...(cursor ? { cursor } : {}) };
    const params = { path: { server_id: serverId }, query };
    const page = await answered(api.GET("/api/v1/mcp/servers/{server_id}/tools", { params, signal }));
    items.push(...page.items);
    if (!page.next_cursor || page.next_cursor === cursor) return { ...page, items };
    cursor = page.next_cursor;
  }
}

export function ServerTools({ server }: { server: Server }) {
  async function deny(names: string[]): Promise<void> {
    const params = { path: { server_id: server.id }, header: { "If-Match": `"${server.version}"` } };
    await answered(api.PATCH("/api/v1/mcp/servers/{server_id}", { params, body: { tool_deny_list: names } })).catch(complain);
    await refreshServers();
  }

  async function approve(tool: Tool): Promise<void> {
    const body = { tools: [{ original_name: tool.original_name, digest: tool.digest }] };
    const params = { path: { server_id: server.id } };
    try {
      await answered(api.POST("/api/v1/mcp/servers/{server_id}/tools/approve", { params, body }));
      say(`${tool.original_name} is offered again.`);
    } catch (error) {
      complain(error);
    }
    await refreshServers();
  }

  return (
    <Loaded query={useQuery(tools(server.id))} what="list of tools">
      {(data) => (
        <>
          {data.state !== "ready" && <Notice kind="warn" title="It does not answer">{data.message}</Notice>}
          {data.dropped_tool_count > 0 && (
            <Notice kind="warn" title={`${data.dropped_tool_count} more cannot be used`}>
              Their definitions are invalid, too large or nested too deep.
            </Notice>
          )}
          <ul className="key-list" aria-label={`Tools of ${server.display_name}`}>
            {data.items.map((each) => (
              <li key={each.original_name}>
                <code><Visible>{each.original_name}</Visible></code>{" "}
                {each.needs_approval && <span className="badge">asks</span>}{" "}
                <Button small onClick={() => void deny([...server.tool_deny_list, each.original_name])}>Deny</Button>
                <div className="field-hint"><Visible>{each.description}</Visible></div>
                {each.is_quarantined && <Quarantined tool={each} onApprove={() => void approve(each)} />}
              </li>
            ))}
            {server.tool_deny_list.map((name) => (
              <li key={name}>
                <code><Visible>{name}</Visible></code> <span className="badge is-warn">denied</span>{" "}
                <Button small onClick={() => void deny(server.tool_deny_list.filter((each) => each !== name))}>Offer again</Button>
              </li>
            ))}
          </ul>
        </>
      )}
    </Loaded>
  );
}

function Quarantined({ tool, onApprove }: { tool: Tool; onApprove: () => void }) {
  return (
    <Notice
      kind="warn"
      title="Its definition changed; it is not offered"
      actions={<Button small look="primary" onClick={onApprove}>Approve the new definition</Button>}
    >
      <p>Approved before: <Visible>{tool.approved_description ?? "nothing"}</Visible></p>
      <JsonTree value={{ before: tool.approved_input_schema, now: tool.input_schema }} depth={1} />
    </Notice>
  );
}
