import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { answered, api } from "../api/client.ts";
import { me } from "../api/queries.ts";
import { KEYS_SHOWN } from "../shell/keys.ts";
import { Button } from "../ui/button.tsx";
import { Menu, MenuHeading, MenuItem, MenuLine } from "../ui/menu.tsx";
import { setTheme, type Theme, theme } from "../ui/theme.ts";
import { readStored } from "../ui/stores/stored.ts";
import { complain } from "../ui/toasts.tsx";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function UserMenu() {
  const who = useQuery(me).data;
  const [, navigate] = useLocation();
  const [chosen, setChosen] = useState<Theme>(theme);
  const isAdmin = who?.role === "owner" || who?.role === "admin";

  async function signOut(): Promise<void> {
    // Who signs in here next must not be told of this person's chats. A failure does not prevent that.
    if (readStored("parley.notifications")) {
      await import("../notifications/own.ts").then(({ forgetDevice }) => forgetDevice()).catch(() => {});
    }
    try {
      await answered(api.POST("/api/v1/sign-out", { body: {} }));
      location.assign("/sign-in");
    } catch (error) {
      complain(error);
    }
  }

  return (
    <Menu
      label="You"
      button={(attributes) => (
        <Button look="quiet" icon="user" className="side-user" {...attributes}>
          {who?.display_name ?? "…"}
        </Button>
      )}
    >
      <MenuItem icon="branch" onChoose={() => navigate("/races")}>
        Races
      </MenuItem>
      <MenuItem icon="settings" onChoose={() => navigate("/settings")}>
        Settings
      </MenuItem>
      {isAdmin && (
        <MenuItem icon="shield" onChoose={() => navigate("/admin")}>
          Administration
        </MenuItem>
      )}
      <MenuItem icon="question" onChoose={() => dispatchEvent(new Event(KEYS_SHOWN))}>
        Keys
      </MenuItem>
      <MenuLine />
      <MenuHeading>Colours</MenuHeading>
      {THEMES.map(([value, label]) => (
        <MenuItem
          key={value}
          checked={chosen === value}
          onChoose={() => {
            setTheme(value);
            setChosen(value);
          }}
        >
          {label}
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem icon="back" onChoose={() => void signOut()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
