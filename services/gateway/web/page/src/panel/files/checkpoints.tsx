/** The time line of the workspace: states that were kept, what changed since, and the way back. */
import { infiniteQueryOptions, queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { answered, api } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { ago, plural } from "../../ui/format.ts";
import { complain, say } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { repositories } from "../repositories.ts";
import { NO_REPOSITORY, NoWorkspace } from "../workspace/no-workspace.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import { MessagesContext } from "../../timeline/messages-context.ts";
import type { TabProps } from "../panel.tsx";
import { PatchView } from "../../diffs/patch-view.tsx";
import { patchesOf } from "../../diffs/patches.ts";
import { wordsOfCheckpoint } from "./checkpoint-words.ts";

type Checkpoint = components["schemas"]["GitCheckpoint"];

/** Of so many of the newest states it is said how many files changed. */
const COUNTED_MAX = 10;

function labelNow(): string {
  return `page-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
}

export default function Checkpoints({ chat }: TabProps) {
  const isReader = useIsReader(chat);
  const [shown, setShown] = useState("");
  const [previous, setPrevious] = useState<Checkpoint | null>(null);
  const path = { chat_id: chat.id };
  const git = useQuery(repositories(chat));
  // States are kept in the repository of the root: without one there is nothing to ask for.
  const hasRepository = git.data?.repositories.some((each) => each.repository === "");
  const list = useInfiniteQuery({
    ...infiniteQueryOptions({
      queryKey: ["chat", chat.id, "checkpoints"],
      queryFn: ({ pageParam, signal }) =>
        answered(
          api.GET("/api/v1/chats/{chat_id}/checkpoints", {
            params: { path, query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } },
            signal,
          }),
        ),
      initialPageParam: "",
      getNextPageParam: (page) => page.next_cursor || undefined,
    }),
    enabled: hasRepository === true || git.isError,
  });

  async function changed(): Promise<void> {
    await queryClient.invalidateQueries({ queryKey: ["chat", chat.id] });
  }

  async function keep(): Promise<void> {
    try {
      await answered(api.POST("/api/v1/chats/{chat_id}/checkpoints", { params: { path }, body: { label: labelNow() } }));
      await changed();
    } catch (error) {
      complain(error);
    }
  }

  async function restore(checkpoint: Checkpoint, isUndo: boolean): Promise<void> {
    try {
      const body = { ref: checkpoint.ref, repository: checkpoint.repository, remove_later_files: isUndo };
      const done = await answered(api.POST("/api/v1/chats/{chat_id}/checkpoints/restore", { params: { path }, body }));
      setPrevious(isUndo ? null : (done.previous ?? null));
      say(`${plural(done.files.length, "file was", "files were")} put back.`);
      await changed();
    } catch (error) {
      complain(error);
    }
  }

  if (hasRepository === false) return <p className="panel-note" role="status">{NO_REPOSITORY}</p>;
  if (list.error instanceof Problem && list.error.status < 500) return <NoWorkspace problem={list.error} />;
  return (
    <Loaded query={list} what="list of checkpoints">
      {({ pages }) => (
        <>
          {!isReader && (
            <div className="section-bar">
              <Button small icon="add" onClick={() => void keep()}>
                Keep this state
              </Button>
              {previous && (
                <Button small icon="undo" onClick={() => void restore(previous, true)}>
                  Undo the restore
                </Button>
              )}
            </div>
          )}
          {pages[0]?.items.length === 0 && (
            <p className="panel-note">Nothing was kept yet. A kept state has all files that git does not ignore.</p>
          )}
          <ol className="time-line" aria-label="Checkpoints">
            {pages.flatMap((page) => page.items).map((each, place, all) => (
              <li key={each.ref} className="time-line-entry">
                <Name chatId={chat.id} checkpoint={each} before={before(all, place)} isCounted={place < COUNTED_MAX} />
                <div className="section-bar">
                  <Button small aria-expanded={shown === each.ref} onClick={() => setShown(shown === each.ref ? "" : each.ref)}>
                    What changed since
                  </Button>
                  {!isReader && (
                    <Button small onClick={() => void restore(each, false)}>
                      Restore
                    </Button>
                  )}
                </div>
                {shown === each.ref && <Since chatId={chat.id} checkpoint={each} />}
              </li>
            ))}
          </ol>
          {list.hasNextPage && (
            <Button small disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              Show more
            </Button>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Return the commit with which a state is compared: the one kept before it, or what was checked out. */
function before(all: readonly Checkpoint[], place: number): string | null {
  const { repository, parent_commit } = all[place]!;
  return all.slice(place + 1).find((each) => each.repository === repository)?.commit ?? parent_commit;
}

interface NameProps {
  chatId: string;
  checkpoint: Checkpoint;
  before: string | null;
  isCounted: boolean;
}

/** The turn, the time and the number of files by which a person knows a kept state. */
function Name({ chatId, checkpoint, before, isCounted }: NameProps) {
  const { repository, commit, created_at: at } = checkpoint;
  const { prompt, note } = wordsOfCheckpoint(checkpoint.label, at, useContext(MessagesContext));
  const changed = useQuery({
    queryKey: ["diff-files", chatId, repository, before, commit],
    enabled: isCounted && before !== null,
    retry: false,
    // Commits do not change.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/chats/{chat_id}/diff", {
          params: { path: { chat_id: chatId }, query: { repository, base: before ?? "", target: commit, max_bytes: 1 } },
          signal,
        }),
      ),
  }).data?.files.length;
  return (
    <div className="time-line-name">
      <strong>{prompt ? <>After “<Visible>{prompt}</Visible>”</> : note ? <Visible>{note}</Visible> : "A state that was kept"}</strong>
      <span className="panel-note">
        {at ? <time dateTime={at} title={new Date(at).toLocaleString()}>{ago(at, Date.now())}</time> : "at an unknown time"}
        {changed !== undefined && `, ${changed === 0 ? "no file" : plural(changed, "file")} changed`}
        {prompt && note && <>, <Visible>{note}</Visible></>}
        {repository && <>, <Visible>{repository}</Visible></>}
      </span>
    </div>
  );
}

function Since({ chatId, checkpoint }: { chatId: string; checkpoint: Checkpoint }) {
  const diff = useQuery(
    queryOptions({
      queryKey: ["chat", chatId, "diff", checkpoint.repository, checkpoint.commit],
      queryFn: ({ signal }) =>
        answered(
          api.GET("/api/v1/chats/{chat_id}/diff", {
            params: { path: { chat_id: chatId }, query: { repository: checkpoint.repository, base: checkpoint.ref } },
            signal,
          }),
        ),
      staleTime: 0,
    }),
  );
  return (
    <Loaded query={diff} what="difference">
      {(data) => (
        <>
          {data.patch === "" && <p className="panel-note">Nothing changed since.</p>}
          {patchesOf(data.patch).map((each) => (
            <details key={each.path} className="panel-file" open>
              <summary>{each.path}</summary>
              <PatchView path={each.path} patch={each.patch} isSideBySide={false} canComment={false} />
            </details>
          ))}
          {data.truncated && <p className="panel-note">The difference is longer than is shown here.</p>}
        </>
      )}
    </Loaded>
  );
}
