/** In which files a new chat works: its own, those of a workspace, or a new one of a template. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { Menu, MenuHeading, MenuItem, MenuLine } from "../ui/menu.tsx";
import { chosenBetween, useChatTitles } from "../workspaces/names.ts";

export type WorkspaceChoice =
  | { kind: "own" }
  | { kind: "workspace"; id: string; name: string }
  | { kind: "template"; id: string; name: string };

export const OWN: WorkspaceChoice = { kind: "own" };
const GONE = new Set(["deleted", "failed"]);

export const usableWorkspaces = queryOptions({
  queryKey: ["usable-workspaces"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/workspaces", { params: { query: { limit: 50 } }, signal })),
});
const usableTemplates = queryOptions({
  queryKey: ["usable-templates"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/templates", { params: { query: { limit: 50 } }, signal })),
});

/** Return the id of the chosen workspace, which is made if a template was chosen. */
export async function workspaceId(choice: WorkspaceChoice, key: string): Promise<string | null> {
  if (choice.kind === "own") return null;
  if (choice.kind === "workspace") return choice.id;
  const params = { header: { "Idempotency-Key": key } };
  return (await answered(api.POST("/api/v1/workspaces", { params, body: { template_id: choice.id } }))).id;
}

interface Props {
  choice: WorkspaceChoice;
  onChoose: (choice: WorkspaceChoice) => void;
}

export function WorkspacePicker({ choice, onChoose }: Props) {
  const workspaces = useQuery(usableWorkspaces);
  const templates = useQuery(usableTemplates);
  const titles = useChatTitles();
  const usable = chosenBetween(workspaces.data?.items ?? [], titles).filter((each) => !GONE.has(each.state ?? ""));
  const offered = templates.data?.items ?? [];
  return (
    <Menu
      label="Workspace"
      button={(attributes) => (
        <Button look="quiet" small icon="folder" {...attributes} title="Files that the chat works in">
          {choice.kind === "own" ? "Own files" : choice.name}
        </Button>
      )}
    >
      <MenuItem checked={choice.kind === "own"} hint="An empty workspace when it needs one" onChoose={() => onChoose(OWN)}>
        Own files
      </MenuItem>
      {offered.length > 0 && (
        <>
          <MenuLine />
          <MenuHeading>New, made from a template</MenuHeading>
        </>
      )}
      {offered.map((each) => (
        <MenuItem
          key={each.id}
          checked={choice.kind === "template" && choice.id === each.id}
          hint={each.description.split("\n")[0] || undefined}
          onChoose={() => onChoose({ kind: "template", id: each.id, name: each.display_name || each.name })}
        >
          {each.display_name || each.name}
        </MenuItem>
      ))}
      {usable.length > 0 && (
        <>
          <MenuLine />
          <MenuHeading>Workspaces</MenuHeading>
        </>
      )}
      {usable.map((each) => (
        <MenuItem
          key={each.id}
          checked={choice.kind === "workspace" && choice.id === each.id}
          hint={each.template_name ?? undefined}
          onChoose={() => onChoose({ kind: "workspace", id: each.id, name: each.name })}
        >
          {each.name}
        </MenuItem>
      ))}
    </Menu>
  );
}
