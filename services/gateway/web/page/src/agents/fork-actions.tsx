/** What a person can do with the work of an agent in a fork: look at its changes, and apply them. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { chat as chatQuery, me, queryClient } from "../api/queries.ts";
import { randomKey } from "../api/transport.ts";
import type { Chat } from "../api/types.ts";
import { ApplyDialog } from "../forks/apply-dialog.tsx";
import { ForkChanges } from "../forks/changes.tsx";
import { changesOf } from "../forks/queries.ts";
import { type Report, standingOf, type Strategy } from "../forks/reports.ts";
import { Loaded } from "../forms/loaded.tsx";
import { races } from "../races/queries.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { hasChanges } from "./forks.ts";

async function apply(agent: Chat, strategy: Strategy): Promise<Report> {
  const report = await answered(
    api.POST("/api/v1/chats/{workspace_id}/merge", {
      params: { path: { workspace_id: agent.id }, header: { "Idempotency-Key": randomKey() } },
      body: { strategy },
    }),
  );
  // The files of the parent, and how those of the agent differ from them, are others now.
  void queryClient.invalidateQueries({ queryKey: ["chat", agent.parent_chat_id] });
  void queryClient.invalidateQueries({ queryKey: ["fork-changes", agent.id] });
  return report;
}

export function ForkActions({ agent }: { agent: Chat }) {
  const [open, setOpen] = useState<"changes" | "apply">();
  const isOffered = hasChanges(agent, useQuery(me).data?.id);
  // One candidate of a race is applied on its screen, which remembers the choice.
  const isCandidate = (useQuery({ ...races, enabled: isOffered }).data?.items ?? []).some((each) => each.id === agent.root_chat_id);
  const isOpen = isOffered && !isCandidate && !agent.archived;
  // Where it cannot be told, as while the workspace does not answer, it is offered.
  // Its parent may have applied them in a turn that ended since.
  const parent = useQuery({ ...chatQuery(agent.parent_chat_id ?? ""), enabled: false }).data;
  const version = `${agent.versions?.snapshot} ${parent?.status ?? ""}`;
  const report = useQuery({ ...changesOf(agent.id, version), enabled: isOpen, retry: false }).data;
  if (!isOffered) return null;
  const standing = standingOf(report);
  const title = agent.title || "Untitled";
  const close = (): void => setOpen(undefined);
  return (
    <div className="agent-actions">
      <Button small aria-label={`Changes of ${title}`} onClick={() => setOpen("changes")}>Changes</Button>
      {isOpen && standing === "applied" && <span className="badge">applied</span>}
      {isOpen && standing === "none" && <span className="card-note">nothing was changed</span>}
      {isOpen && standing !== "applied" && standing !== "none" && (
        <Button small aria-label={`Apply the changes of ${title}`} onClick={() => setOpen("apply")}>Apply</Button>
      )}
      {open === "changes" && <ChangesDialog agent={agent} title={title} onClose={close} />}
      {open === "apply" && (
        <ApplyDialog
          title={`Apply the work of ${title}`}
          text="Its changes are written into the workspace that it was copied from, that of the chat which started it."
          apply={(strategy) => apply(agent, strategy)}
          onClose={close}
        />
      )}
    </div>
  );
}

/** What an agent has changed and its parent does not have, as it is when the dialog is opened. */
function ChangesDialog({ agent, title, onClose }: { agent: Chat; title: string; onClose: () => void }) {
  const query = useQuery({ ...changesOf(agent.id, String(agent.versions.snapshot)), staleTime: 0, gcTime: 0, refetchOnWindowFocus: false });
  return (
    <Dialog title={`Changes of ${title}`} wide onClose={onClose}>
      <Loaded query={query} what="difference">
        {(report) => <ForkChanges report={report} />}
      </Loaded>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
