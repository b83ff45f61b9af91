/** The files of the workspace, with a preview. */
import { infiniteQueryOptions, queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { Problem, problemOf } from "../../api/problem.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { bytes } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Visible } from "../../ui/visible.tsx";
import { NoWorkspace } from "../workspace/no-workspace.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import { contentUrl } from "./content-url.ts";
import { Upload } from "./upload.tsx";
import type { TabProps } from "../panel.tsx";

const PREVIEW_BYTES_MAX = 200_000;

export default function Files({ chat }: TabProps) {
  const isReader = useIsReader(chat);
  const [directory, setDirectory] = useState("");
  const [file, setFile] = useState("");
  const list = useInfiniteQuery(
    infiniteQueryOptions({
      queryKey: ["chat", chat.id, "files", directory],
      queryFn: ({ pageParam, signal }) =>
        answered(
          api.GET("/api/v1/chats/{chat_id}/files", {
            params: {
              path: { chat_id: chat.id },
              query: {
                limit: 200,
                ...(directory ? { path: directory } : {}),
                ...(pageParam ? { cursor: pageParam } : {}),
              },
            },
            signal,
          }),
        ),
      initialPageParam: "",
      getNextPageParam: (page) => page.next_cursor || undefined,
    }),
  );
  if (list.error instanceof Problem && list.error.status < 500) return <NoWorkspace problem={list.error} />;
  if (file) return <Preview chatId={chat.id} path={file} onBack={() => setFile("")} />;
  return (
    <Loaded query={list} what="directory">
      {({ pages }) => (
        <>
          <div className="section-bar">
            {directory && (
              <Button small icon="back" onClick={() => setDirectory(directory.split("/").slice(0, -1).join("/"))}>
                Up
              </Button>
            )}
            {directory ? <code className="entry-name">{directory}</code> : <span className="entry-name">All files</span>}
            {!isReader && !chat.archived && <Upload chatId={chat.id} directory={directory} onStored={() => void list.refetch()} />}
          </div>
          <ul className="entries">
            {pages.flatMap((page) => page.items).map((each) => {
              const isDirectory = each.type === "directory";
              return (
                <li key={each.path}>
                  <button
                    type="button"
                    className="entry"
                    onClick={() => (isDirectory ? setDirectory(each.path) : setFile(each.path))}
                  >
                    <Icon name={isDirectory ? "folder" : "file"} />
                    <span className="entry-name">
                      <Visible>{each.path.split("/").pop() ?? each.path}</Visible>
                    </span>
                    <span className="entry-side">{isDirectory ? "" : bytes(each.size_bytes)}</span>
                  </button>
                </li>
              );
            })}
          </ul>
          {pages[0]?.items.length === 0 && <p className="panel-note">This directory is empty.</p>}
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

interface PreviewProps {
  chatId: string;
  path: string;
  onBack: () => void;
}

function Preview({ chatId, path, onBack }: PreviewProps) {
  const url = contentUrl(chatId, path);
  const content = useQuery(
    queryOptions({
      queryKey: ["chat", chatId, "content", path],
      queryFn: async ({ signal }) => {
        const answer = await fetch(url, { signal, headers: { Range: `bytes=0-${PREVIEW_BYTES_MAX - 1}` } });
        // An empty file has no range.
        if (answer.status === 416) return { text: "", isBinary: false, isCut: false };
        if (!answer.ok) throw await problemOf(answer);
        const data = new Uint8Array(await answer.arrayBuffer());
        const isBinary = data.includes(0);
        return {
          text: isBinary ? "" : new TextDecoder().decode(data),
          isBinary,
          isCut: data.length === PREVIEW_BYTES_MAX,
        };
      },
      staleTime: 0,
    }),
  );
  return (
    <div className="panel-part">
      <div className="section-bar">
        <Button small icon="back" onClick={onBack}>
          Files
        </Button>
        <code>{path}</code>
        <a className="button is-small" href={url} download>
          Download
        </a>
      </div>
      <Loaded query={content} what="file">
        {(data) =>
          data.isBinary ? (
            <p className="panel-note">This file is not text. Download it to look at it.</p>
          ) : (
            <>
              <pre className="preview" tabIndex={0}>
                <Visible>{data.text}</Visible>
              </pre>
              {data.isCut && <p className="panel-note">Only the first {bytes(PREVIEW_BYTES_MAX)} are shown.</p>}
            </>
          )
        }
      </Loaded>
    </div>
  );
}
