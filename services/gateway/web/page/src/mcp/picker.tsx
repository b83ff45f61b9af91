/** Which MCP servers the next message lets its chat use. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { Menu, MenuHeading, MenuMark } from "../ui/menu.tsx";
import { useRemembered } from "../ui/stores/stored.ts";
import { Notice } from "../ui/states.tsx";
import { ConnectButton } from "./login.tsx";
import { isUsed, type Selection, type Server, stateOf, toggled } from "./selection.ts";
import { servers } from "./servers.ts";

interface Props {
  selection: Selection;
  onChoose: (selection: Selection) => void;
}

export function ServerPicker({ selection, onChoose }: Props) {
  const query = useQuery(servers);
  const all = (query.data?.items ?? []).filter((each) => each.is_enabled);
  const used = all.filter((each) => isUsed(each, selection));
  const known = all.length > 0 ? plural(used.length, "server") : "";
  const words = useRemembered("parley.servers", query.data ? known : undefined);
  if (!words) return null;
  return (
    <Menu
      label="MCP servers"
      button={(attributes) => (
        <Button look="quiet" small icon="tool" {...attributes} title="MCP servers of this chat, from this message on">
          {words}
        </Button>
      )}
    >
      <MenuHeading>From this message on</MenuHeading>
      {all.map((each) => (
        <ServerItem
          key={each.id}
          server={each}
          isChecked={used.includes(each)}
          onToggle={() => onChoose(toggled(all, selection, each.id))}
        />
      ))}
    </Menu>
  );
}

function ServerItem({ server, isChecked, onToggle }: { server: Server; isChecked: boolean; onToggle: () => void }) {
  const isForced = server.availability === "force_on";
  const state = stateOf(server);
  const hints = [isForced ? "used by every chat" : "", state.action ? state.words : "", server.description].filter(Boolean);
  return (
    <button
      type="button"
      role="menuitemcheckbox"
      aria-checked={isChecked}
      aria-disabled={isForced ? "true" : undefined}
      tabIndex={-1}
      className="menu-item"
      onClick={() => {
        if (!isForced) onToggle();
      }}
    >
      <MenuMark isOn={isChecked} />
      <span>
        {server.display_name}
        {hints.length > 0 && <span className="menu-item-hint">{hints.join(" · ").slice(0, 120)}</span>}
      </span>
    </button>
  );
}

/** The used servers that cannot be used before their user did something. */
export function ServersToConnect({ selection }: { selection: Selection }) {
  const all = useQuery(servers).data?.items ?? [];
  const open = all.filter((each) => isUsed(each, selection) && stateOf(each).action !== null);
  return open.map((each) => (
    <Notice key={each.id} kind="warn" icon="key" title={`${each.display_name}: ${stateOf(each).words.toLowerCase()}`} actions={<Remedy server={each} />}>
      Its tools are not offered until then.
    </Notice>
  ));
}

function Remedy({ server }: { server: Server }) {
  if (stateOf(server).action === "values") return <Link className="button is-small" href="/settings/mcp">Give your values</Link>;
  return <ConnectButton server={server} />;
}
