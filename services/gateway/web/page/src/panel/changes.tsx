/** How the repositories of the workspace differ from their last commits. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { useStored } from "../ui/stored.ts";
import type { TabProps } from "./panel.tsx";
import { NoWorkspace } from "./no-workspace.tsx";
import { PatchView } from "./patch-view.tsx";
import { patchesOf } from "./patches.ts";

/** Of more files than these only the names are shown at first. */
const OPEN_FILES_MAX = 20;

type Repository = components["schemas"]["GitRepository"];

export default function Changes({ chat }: TabProps) {
  // What the list of chats tells changes with every edit, so that the panel reads again.
  const [look, setLook] = useStored<"unified" | "sides">("parley.diff", "unified");
  const seen = chat.diff_status?.refreshed_at ?? "";
  const git = useQuery(
    queryOptions({
      queryKey: ["chat", chat.id, "git", seen],
      queryFn: ({ signal }) =>
        answered(api.GET("/api/v1/chats/{chat_id}/git", { params: { path: { chat_id: chat.id } }, signal })),
      placeholderData: (before) => before,
    }),
  );
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
                canComment={!chat.archived}
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
  canComment: boolean;
}

function OneRepository({ chatId, repository, seen, ...look }: OneRepositoryProps) {
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
      <p>
        <strong>{repository.branch ?? "no branch"}</strong>{" "}
        <span className="panel-note">
          {plural(repository.files.length + repository.omitted_files, "file")},{" "}
          <span className="panel-added">+{repository.added_lines}</span>{" "}
          <span className="panel-deleted">−{repository.deleted_lines}</span>
        </span>
      </p>
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
                  <PatchView path={[repository.repository, each.path].filter((part) => part && part !== ".").join("/")} patch={each.patch} {...look} />
                </details>
              ))}
              {data.truncated && <p className="panel-note">The difference is longer than is shown here.</p>}
            </>
          )}
        </Loaded>
      )}
    </section>
  );
}
