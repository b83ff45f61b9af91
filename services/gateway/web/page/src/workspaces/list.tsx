/** A table of workspaces in which the copies that agents work in are left out until they are asked for. */
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { isOfAgent } from "./names.ts";
import { WorkspaceTable, type WorkspaceTableProps } from "./table.tsx";

export function WorkspaceList({ rows, ...rest }: WorkspaceTableProps) {
  const [isWhole, setWhole] = useState(false);
  const copies = rows.filter(isOfAgent).length;
  return (
    <>
      <WorkspaceTable rows={isWhole ? rows : rows.filter((each) => !isOfAgent(each))} {...rest} />
      {copies > 0 && (
        <Button small onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Hide" : "Show"} {plural(copies, "copy that agents work in", "copies that agents work in")}
        </Button>
      )}
    </>
  );
}
