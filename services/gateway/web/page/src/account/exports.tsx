/** The exports of an account: begun, followed while they are made, downloaded, and why one failed. */
import "./account.css";
import { useQuery } from "@tanstack/react-query";
import { queryClient } from "../api/queries.ts";
import type { AccountExport } from "../api/types.ts";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { canBegin, collected } from "./export-words.ts";
import type { ExportSource } from "./sources.ts";

const LOOK_AGAIN_MS = 2_000;

interface Props {
  source: ExportSource;
  /** What the button says as long as there is no export. */
  label: string;
}

export function Exports({ source, label }: Props) {
  const query = useQuery({
    queryKey: source.key,
    queryFn: ({ signal }) => source.list(signal),
    staleTime: 0,
    refetchInterval: (found) => (canBegin(found.state.data?.items ?? []) ? false : LOOK_AGAIN_MS),
  });
  const saving = useSaving();

  async function begin(): Promise<void> {
    await source.begin();
    await queryClient.invalidateQueries({ queryKey: source.key });
  }

  return (
    <Loaded query={query} what="list of exports">
      {({ items }) => {
        const isFree = canBegin(items);
        return (
          <div className="section-part">
            {items.map((each) => (
              <Export key={each.id} export={each} archive={source.archive(each.id)} />
            ))}
            {saving.problem && <p className="field-problem" role="alert">{saving.problem}</p>}
            <div className="form-actions">
              <Button look={items.length ? "plain" : "primary"} disabled={!isFree || saving.isBusy} onClick={() => void saving.save(begin)}>
                {items.length ? "Begin a new export" : label}
              </Button>
            </div>
            {items.length > 0 && isFree && <p className="field-hint">A new export takes the place of this one.</p>}
          </div>
        );
      }}
    </Loaded>
  );
}

function Export({ export: made, archive }: { export: AccountExport; archive: string }) {
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
