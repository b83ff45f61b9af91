/** All that is one's own as one archive, and how an account is deleted. */
import "./account.css";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { AccountExport } from "../api/types.ts";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { canBegin, collected } from "./export-words.ts";

const LOOK_AGAIN_MS = 2_000;

const ownExports = queryOptions({
  queryKey: ["me", "exports"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/exports", { signal })),
  staleTime: 0,
  refetchInterval: (query) => (canBegin(query.state.data?.items ?? []) ? false : LOOK_AGAIN_MS),
});

async function begin(): Promise<void> {
  await answered(api.POST("/api/v1/me/exports"));
  await queryClient.invalidateQueries({ queryKey: ownExports.queryKey });
}

export default function AccountSection() {
  return (
    <>
      <p>
        An export is one ZIP file with all that is yours: your chats with their messages and files, the files of your workspaces,
        your settings, skills, schedules and usage, and what is known of your keys and sessions. Values of keys and secrets are not in it.
      </p>
      <Loaded query={useQuery(ownExports)} what="list of exports">
        {(data) => <Exports items={data.items} />}
      </Loaded>
      <div className="section-part">
        <h3 className="section-part-title">Delete the account</h3>
        <p>
          An administrator deletes accounts. Export what you want to keep first: your chats, files, workspaces, keys and secrets are
          deleted with the account, and that cannot be undone.
        </p>
      </div>
    </>
  );
}

function Exports({ items }: { items: readonly AccountExport[] }) {
  const saving = useSaving();
  const isFree = canBegin(items);
  return (
    <div className="section-part">
      {items.map((each) => (
        <Export key={each.id} export={each} />
      ))}
      {saving.problem && <p className="field-problem" role="alert">{saving.problem}</p>}
      <div className="form-actions">
        <Button look={items.length ? "plain" : "primary"} disabled={!isFree || saving.isBusy} onClick={() => void saving.save(begin)}>
          {items.length ? "Begin a new export" : "Export all that is mine"}
        </Button>
      </div>
      {items.length > 0 && isFree && <p className="field-hint">A new export takes the place of this one.</p>}
    </div>
  );
}

function Export({ export: made }: { export: AccountExport }) {
  const archive = `/api/v1/me/exports/${made.id}/archive`;
  if (made.state === "running") {
    return (
      <div className="export">
        <p role="status">The export is being made: {collected(made)} so far. You may leave this page meanwhile.</p>
        <progress className="export-progress" aria-label="The export is being made" />
      </div>
    );
  }
  const until = made.expires_at && <p className="field-hint">It is deleted on {new Date(made.expires_at).toLocaleString()}.</p>;
  if (made.state === "failed") {
    return (
      <Notice
        kind="bad"
        alert
        title="The export failed"
        actions={<a className="button is-small" href={archive} download>Download what it has</a>}
      >
        <Visible>{made.failure}</Visible>
        {until}
      </Notice>
    );
  }
  return (
    <div className="export">
      <p role="status">The export is complete: {collected(made)}.</p>
      <div>
        <a className="button is-primary" href={archive} download>Download</a>
      </div>
      {until}
    </div>
  );
}
