/** One field that finds chats, messages, files of the open chat, and commands. */
import "./find.css";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useDeferredValue, useRef, useState } from "react";
import { useLocation, useRoute } from "wouter";
import { answered, api } from "../api/client.ts";
import { wordsOf } from "../api/problem.ts";
import { me } from "../api/queries.ts";
import { showPanel } from "../panel/tabs/panel-state.ts";
import { KEYS_SHOWN } from "../shell/keys.ts";
import { toggleSide } from "../shell/side-state.ts";
import { type FilterName, FILTERS, typedFilter } from "../sidebar/typed-filters.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";
import { queryOf, withFilter } from "./chat-filters.ts";
import { Marked } from "./marked.tsx";

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
  const [filters, setFilters] = useState<readonly FilterName[]>([]);
  const [marked, setMarked] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const words = useDeferredValue(text.trim());
  const chats = useChats(words, filters);
  // Filters are about chats, so nothing else is found with one.
  const others = filters.length ? "" : words;
  const messages = useMessages(others);
  const files = useFiles(others);
  const commands = useCommands(words).filter(() => filters.length === 0);
  const found = [...chats.found, ...messages.found, ...files.found, ...commands];
  const problem = chats.error ?? messages.error;
  const isBusy = text.trim() !== words || chats.isBusy || messages.isBusy || files.isBusy;

  /** Take what is typed; a filter that it ends with becomes a pill. */
  function type(next: string): void {
    const typed = typedFilter(next);
    setText(typed ? typed.text : next);
    setMarked(0);
    if (typed) setFilters((was) => withFilter(was, typed.name));
  }

  function remove(name: FilterName): void {
    setFilters((was) => was.filter((each) => each !== name));
    setMarked(0);
    field.current?.focus();
  }

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
    const last = filters.at(-1);
    if (event.key === "Backspace" && text === "" && last) return remove(last);
    if (event.key === "Enter" && typedFilter(`${text} `)) {
      event.preventDefault();
      return type(`${text} `);
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
      <div className="find-field input">
        <Pills filters={filters} onRemove={remove} />
        <input
          ref={field}
          type="search"
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={found[marked] ? `found-${marked}` : undefined}
          aria-label="Find chats, messages, files and commands"
          placeholder={filters.length ? "Titles of chats" : "Chats, messages, files, commands"}
          title="is:unread, is:shared and is:archived are filters"
          autoFocus
          value={text}
          onChange={(event) => type(event.target.value)}
          onKeyDown={onKey}
        />
      </div>
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
        {found.length === 0 ? (isBusy ? "Searching…" : "Nothing was found.") : chats.isCut ? `The first ${SHOWN_MAX} chats are shown.` : ""}
      </p>
    </Dialog>
  );
}

function Pills({ filters, onRemove }: { filters: readonly FilterName[]; onRemove: (name: FilterName) => void }) {
  return filters.map((name) => {
    const label = FILTERS.find(([each]) => each === name)![1];
    return (
      <button key={name} type="button" className="pill" aria-label={`Remove the filter ${label}`} onClick={() => onRemove(name)}>
        {label}
        <Icon name="close" />
      </button>
    );
  });
}

interface Results {
  found: Found[];
  error: unknown;
  isBusy: boolean;
}

function useChats(words: string, filters: readonly FilterName[]): Results & { isCut: boolean } {
  const [, navigate] = useLocation();
  const asked = queryOf(words, filters);
  const query = useQuery({
    queryKey: ["find", "chats", filters, asked],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/chats", { params: { query: { limit: SHOWN_MAX, ...asked } }, signal })),
    // Results of the words before stay until others come, if they still fit.
    placeholderData: (was, before) => (JSON.stringify(before?.queryKey[2]) === JSON.stringify(filters) ? was : undefined),
  });
  const fitting = (query.data?.items ?? []).filter((chat) => chat.title.toLowerCase().includes(words.toLowerCase()));
  const found = fitting.map((chat): Found => ({
    key: `chat ${chat.id}`,
    group: "Chats",
    icon: "list",
    label: <Marked text={chat.title || "Untitled"} words={words} />,
    choose: () => navigate(`/chats/${chat.id}`),
  }));
  return { found, error: query.error, isBusy: query.isFetching, isCut: Boolean(query.data?.next_cursor) };
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
    note: <Marked text={hit.title || "Untitled"} words={words} />,
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
    label: <code><Marked text={file.path} words={words} /></code>,
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
    .map(([label, icon, choose]) => ({ key: `command ${label}`, group: "Commands", icon, label: <Marked text={label} words={words} />, choose }));
}
