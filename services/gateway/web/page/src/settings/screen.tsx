/**
 * One's own settings. Each section is a file of its own in this folder: add it to `SECTIONS`.
 */
import { type ComponentType, lazy } from "react";
import { Sections } from "../shell/sections.tsx";

export interface Section {
  name: string;
  title: string;
  component: ComponentType;
}

export const SECTIONS: readonly Section[] = [
  { name: "profile", title: "Profile", component: lazy(() => import("./profile.tsx")) },
  { name: "instructions", title: "Instructions", component: lazy(() => import("./instructions.tsx")) },
  { name: "models", title: "Models", component: lazy(() => import("./models/section.tsx")) },
  { name: "skills", title: "Skills", component: lazy(() => import("../skills/section.tsx")) },
  { name: "schedules", title: "Schedules", component: lazy(() => import("../schedules/section.tsx")) },
  { name: "display", title: "Display", component: lazy(() => import("../display/section.tsx")) },
  { name: "notifications", title: "Notifications", component: lazy(() => import("../notifications/section.tsx")) },
  { name: "usage", title: "Usage", component: lazy(() => import("./usage.tsx")) },
  { name: "provider-keys", title: "Provider keys", component: lazy(() => import("./keys/provider-keys.tsx")) },
  { name: "mcp", title: "MCP servers", component: lazy(() => import("../mcp/own-servers.tsx")) },
  { name: "secrets", title: "Secrets", component: lazy(() => import("./secrets/section.tsx")) },
  { name: "workspaces", title: "Workspaces", component: lazy(() => import("./workspaces.tsx")) },
  { name: "security", title: "Sign-in", component: lazy(() => import("./security/section.tsx")) },
  { name: "sessions", title: "Sessions", component: lazy(() => import("./security/sessions.tsx")) },
  { name: "api-keys", title: "API keys", component: lazy(() => import("./keys/api-keys.tsx")) },
  { name: "account", title: "Your data", component: lazy(() => import("../account/section.tsx")) },
  { name: "access", title: "Access to your chats", component: lazy(() => import("./access.tsx")) },
];

export default function SettingsScreen({ section }: { section: string | undefined }) {
  return <Sections base="/settings" title="Settings" sections={SECTIONS} section={section} />;
}
