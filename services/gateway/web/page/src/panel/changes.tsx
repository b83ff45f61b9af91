/** How the repositories of the workspace differ from their last commits. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { me } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { Loaded } from "../forms/loaded.tsx";
import { branchLink } from "../diffs/branch-links.ts";
import { PatchView } from "../diffs/patch-view.tsx";
import { patchesOf } from "../diffs/patches.ts";
import { post } from "../outbox/outbox.ts";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { useStored } from "../ui/stores/stored.ts";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import type { TabProps } from "./panel.tsx";
import { repositories } from "./repositories.ts";
import { NoWorkspace } from "./workspace/no-workspace.tsx";

/** Of more files than these only the names are shown at first. */
const OPEN_FILES_MAX = 20;

type Repository = components["schemas"]["GitRepository"];

export default function Changes({ chat }: TabProps) {
  const [look, setLook] = useStored<"unified" | "sides">("parley.diff", "unified");
  const seen = chat.diff_status?.refreshed_at ?? "";
  const canWrite = useQuery(me).data?.id === chat.owner_id && !chat.archived;
  const git = useQuery(repositories(chat));
  if (git.error instanceof Problem && git.error.status < 500) return <NoWorkspace problem={git.error} />;
  return (
    <Loaded query={git} what="list of changes">
      {(data) =>
        data.repositories.length ? (
          <>
            <div className="section-bar">
              <Button small aria-pressed={look === "sides"} onClick={() => setLook(look === "sides" ? "unified" : "sides")}>
                Side by side
              </Button>
            </div>
            {data.repositories.map((each) => (
              <OneRepository
                key={each.repository}
                chatId={chat.id}
                repository={each}
                seen={seen}
                isSideBySide={look === "sides"}
                canWrite={canWrite}
              />
            ))}
            <Button small onClick={() => void git.refetch()}>
              Read again
            </Button>
          </>
        ) : (
          <p className="panel-note">There is no Git repository in the workspace. Files has what is there.</p>
        )
      }
    </Loaded>
  );
}

interface OneRepositoryProps {
  chatId: string;
  repository: Repository;
  seen: string;
  isSideBySide: boolean;
  /** Whether the chat takes messages of the person who looks. */
  canWrite: boolean;
}

function OneRepository({ chatId, repository, seen, isSideBySide, canWrite }: OneRepositoryProps) {
  const diff = useQuery(
    queryOptions({
      queryKey: ["chat", chatId, "diff", repository.repository, seen],
      queryFn: ({ signal }) =>
        answered(
          api.GET("/api/v1/chats/{chat_id}/diff", {
            params: { path: { chat_id: chatId }, query: { repository: repository.repository } },
            signal,
          }),
        ),
      enabled: repository.files.length > 0,
      placeholderData: (before) => before,
    }),
  );
  return (
    <section className="panel-part" aria-label={repository.repository}>
      <Branch repository={repository} />
      {repository.problem && <p className="field-problem">{repository.problem}</p>}
      {repository.files.length === 0 ? (
        <p className="panel-note">Nothing was changed since the last commit.</p>
      ) : (
        <Loaded query={diff} what="difference">
          {(data) => (
            <>
              {patchesOf(data.patch).map((each, place) => (
                <details key={each.path} className="panel-file" open={place < OPEN_FILES_MAX}>
                  <summary>{each.path}</summary>
                  <PatchView path={[repository.repository, each.path].filter((part) => part && part !== ".").join("/")} patch={each.patch} isSideBySide={isSideBySide} canComment={canWrite} />
                </details>
              ))}
              {data.truncated && <p className="panel-note">The difference is longer than is shown here.</p>}
              {canWrite && (
                <Button small icon="branch" onClick={() => void askForCommit(chatId, repository)}>
                  Ask for a commit
                </Button>
              )}
            </>
          )}
        </Loaded>
      )}
    </section>
  );
}

/** The branch, how it differs from where it was pushed, and where it is on the web. */
function Branch({ repository }: { repository: Repository }) {
  const { branch, upstream, ahead, behind, files, omitted_files: omitted } = repository;
  const link = branchLink(repository.origin_url, branch, upstream);
  return (
    <p>
      <strong><Visible>{branch ?? "no branch"}</Visible></strong>{" "}
      <span className="panel-note">
        {plural(files.length + omitted, "file")},{" "}
        <span className="panel-added">+{repository.added_lines}</span>{" "}
        <span className="panel-deleted">−{repository.deleted_lines}</span>
        {branch && <>{" · "}<Visible>{pushedWords(upstream, ahead, behind)}</Visible></>}
      </span>
      {link && (
        <span className="panel-note">
          {" "}
          <a href={link.href} target="_blank" rel="noopener noreferrer">{link.words}</a>
          <span className="link-host"> ({link.host})</span>
        </span>
      )}
    </p>
  );
}

/** Say how a branch differs from where it was pushed. */
function pushedWords(upstream: string | null, ahead: number, behind: number): string {
  if (!upstream) return "not pushed";
  const differs = [ahead > 0 && `${ahead} ahead of`, behind > 0 && `${behind} behind`].filter(Boolean).join(" and ");
  return differs ? `${differs} ${upstream}` : `as ${upstream}`;
}

/** Write to the agent that it should commit; it knows what the changes are for. */
async function askForCommit(chatId: string, { repository }: Repository): Promise<void> {
  const place = repository && repository !== "." ? ` in ${repository}` : "";
  const text = `Commit the changes${place}. Say in the message what changed and why.`;
  try {
    const sent = await post({ chatId, content: [{ type: "text", text }], busy: "queue", modelId: null, effort: null, mcpServerIds: null });
    say(sent.kind === "stored" ? "The agent is asked for a commit." : "The agent is asked for a commit once there is a connection.");
  } catch (error) {
    complain(error);
  }
}
