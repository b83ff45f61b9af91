/** One field that finds chats, messages, files of the open chat, and commands. */
import "./find.css";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useDeferredValue, useState } from "react";
import { useLocation, useRoute } from "wouter";
import { answered, api } from "../api/client.ts";
import { wordsOf } from "../api/problem.ts";
import { me } from "../api/queries.ts";
import { showPanel } from "../panel/panel-state.ts";
import { KEYS_SHOWN } from "../shell/keys.ts";
import { toggleSide } from "../shell/side-state.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";

interface Found {
  key: string;
  group: "Chats" | "Messages" | "Files" | "Commands";
  icon: IconName;
  label: ReactNode;
  note?: ReactNode;
  choose: () => void;
}

const SEARCH_AGAIN_MS = 2_000;
const SHOWN_MAX = 8;

export default function FindDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [marked, setMarked] = useState(0);
  const words = useDeferredValue(text.trim());
  const chats = useChats(words);
  const messages = useMessages(words);
  const files = useFiles(words);
  const commands = useCommands(words);
  const found = [...chats.found, ...messages.found, ...files.found, ...commands];
  const problem = chats.error ?? messages.error;
  const isBusy = text.trim() !== words || chats.isBusy || messages.isBusy || files.isBusy;

  function choose(each: Found | undefined): void {
    if (!each) return;
    onClose();
    each.choose();
  }

  function onKey(event: React.KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") {
      // The browser would only empty the field.
      event.preventDefault();
      return onClose();
    }
    if (found.length === 0) return;
    if (event.key === "ArrowDown") setMarked((marked + 1) % found.length);
    else if (event.key === "ArrowUp") setMarked((marked - 1 + found.length) % found.length);
    else if (event.key === "Enter") choose(found[marked] ?? found[0]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog title="Find" wide onClose={onClose}>
      <input
        className="input"
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found[marked] ? `found-${marked}` : undefined}
        aria-label="Find chats, messages, files and commands"
        placeholder="Chats, messages, files, commands"
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setMarked(0);
        }}
        onKeyDown={onKey}
      />
      {problem !== null && <p className="field-problem" role="alert">{wordsOf(problem)}</p>}
      <div className="found" id="found" role="listbox" aria-label="Found">
        {found.map((each, index) => (
          <div key={each.key}>
            {found[index - 1]?.group !== each.group && <div className="menu-heading" role="presentation">{each.group}</div>}
            <div
              id={`found-${index}`}
              role="option"
              className="found-row"
              aria-selected={index === marked}
              ref={index === marked ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
              onClick={() => choose(each)}
            >
              <Icon name={each.icon} />
              <span className="found-label">{each.label}</span>
              {each.note && <span className="found-note">{each.note}</span>}
            </div>
          </div>
        ))}
      </div>
      <p className="card-note" role="status">
        {found.length === 0 ? (isBusy ? "Searching…" : "Nothing was found.") : ""}
      </p>
    </Dialog>
  );
}

interface Results {
  found: Found[];
  error: unknown;
  isBusy: boolean;
}

function useChats(words: string): Results {
  const [, navigate] = useLocation();
  const q = words ? `title:"${words.replaceAll('"', '""')}"` : "";
  const query = useQuery({
    queryKey: ["find", "chats", q],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/chats", { params: { query: { limit: SHOWN_MAX, ...(q ? { q } : {}) } }, signal })),
    placeholderData: (was) => was,
  });
  // Results of the words before stay until others come, if they still fit.
  const fitting = (query.data?.items ?? []).filter((chat) => chat.title.toLowerCase().includes(words.toLowerCase()));
  const found = fitting.map((chat): Found => ({
    key: `chat ${chat.id}`,
    group: "Chats",
    icon: "list",
    label: <Visible>{chat.title || "Untitled"}</Visible>,
    choose: () => navigate(`/chats/${chat.id}`),
  }));
  return { found, error: query.error, isBusy: query.isFetching };
}

function useMessages(words: string): Results {
  const [, navigate] = useLocation();
  const query = useQuery({
    queryKey: ["find", "messages", words],
    enabled: words.length > 1,
    queryFn: ({ signal }) => answered(api.GET("/api/v1/search", { params: { query: { q: words, limit: SHOWN_MAX } }, signal })),
    // What was just written is found once the index has it; a hit in a title is no message.
    refetchInterval: (searched) =>
      searched.state.data?.items.some((hit) => hit.message_id !== null) ? false : SEARCH_AGAIN_MS,
  });
  const hits = words.length > 1 ? (query.data?.items ?? []) : [];
  const found = hits.filter((hit) => hit.message_id !== null).map((hit): Found => ({
    key: `message ${hit.chat_id} ${hit.message_id}`,
    group: "Messages",
    icon: "search",
    label: hit.excerpt.map((part, index) =>
      part.match ? <mark key={index}><Visible>{part.text}</Visible></mark> : <Visible key={index}>{part.text}</Visible>,
    ),
    note: <Visible>{hit.title || "Untitled"}</Visible>,
    choose: () => {
      navigate(`/chats/${hit.chat_id}#m${hit.message_id}`);
      // The screen of the same chat is there already, and follows the address.
      dispatchEvent(new HashChangeEvent("hashchange"));
    },
  }));
  return { found, error: query.error, isBusy: query.isLoading };
}

function useFiles(words: string): Results {
  const [, params] = useRoute("/chats/:chatId");
  const chatId = params?.chatId ?? "";
  const query = useQuery({
    queryKey: ["find", "files", chatId, words],
    enabled: Boolean(chatId) && words.length > 0,
    // A chat without a workspace has no files, which is no failure of a search.
    retry: false,
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/chats/{chat_id}/files/find", {
          params: { path: { chat_id: chatId }, query: { q: words, limit: SHOWN_MAX } },
          signal,
        }),
      ),
  });
  const found = (query.data?.items ?? []).map((file): Found => ({
    key: `file ${file.path}`,
    group: "Files",
    icon: file.type === "directory" ? "folder" : "file",
    label: <code><Visible>{file.path}</Visible></code>,
    choose: () => {
      if (file.type === "directory") return showPanel(true);
      const address = `/api/v1/chats/${chatId}/files/content?path=${encodeURIComponent(file.path)}`;
      const link = Object.assign(document.createElement("a"), { href: address, download: file.path.split("/").at(-1) });
      link.click();
    },
    note: file.type === "directory" ? "" : "download",
  }));
  return { found, error: null, isBusy: query.isFetching };
}

function useCommands(words: string): Found[] {
  const [, navigate] = useLocation();
  const role = useQuery(me).data?.role;
  const isAdmin = role === "owner" || role === "admin";
  const all: readonly (readonly [string, IconName, () => void])[] = [
    ["New chat", "add", () => navigate("/")],
    ["Races", "branch", () => navigate("/races")],
    ["What waits for me", "bell", () => navigate("/waiting")],
    ["Settings", "settings", () => navigate("/settings")],
    ...(isAdmin ? [["Administration", "shield", () => navigate("/admin")] as const] : []),
    ["Workspace of the chat", "panel", () => showPanel(true)],
    ["Show or hide the list of chats", "menu", toggleSide],
    ["Show the keys", "question", () => dispatchEvent(new Event(KEYS_SHOWN))],
  ];
  return all
    .filter(([label]) => label.toLowerCase().includes(words.toLowerCase()))
    .map(([label, icon, choose]) => ({ key: `command ${label}`, group: "Commands", icon, label, choose }));
}
