/**
 * Administration. Each section is a file of its own in this folder: add it to `SECTIONS`.
 */
import { useQuery } from "@tanstack/react-query";
import { lazy } from "react";
import { me } from "../api/queries.ts";
import type { Section } from "../settings/screen.tsx";
import { StateScreen } from "../shell/screen-head.tsx";
import { Sections } from "../shell/sections.tsx";
import { Empty } from "../ui/states.tsx";

export const SECTIONS: readonly Section[] = [
  { name: "users", title: "Users", component: lazy(() => import("./people/users.tsx")) },
  { name: "groups", title: "Groups", component: lazy(() => import("./people/groups.tsx")) },
  { name: "issuers", title: "Identity providers", component: lazy(() => import("./people/issuers.tsx")) },
  { name: "providers", title: "Providers", component: lazy(() => import("./providers/section.tsx")) },
  { name: "models", title: "Models", component: lazy(() => import("./models/section.tsx")) },
  { name: "mcp", title: "MCP servers", component: lazy(() => import("../mcp/admin/section.tsx")) },
  { name: "prompts", title: "Instructions", component: lazy(() => import("./prompts.tsx")) },
  { name: "advisor", title: "Advisor", component: lazy(() => import("./advisor.tsx")) },
  { name: "approvals", title: "Approvals", component: lazy(() => import("./approvals.tsx")) },
  { name: "hooks", title: "Hooks", component: lazy(() => import("../hooks/section.tsx")) },
  { name: "limits", title: "Spend limits", component: lazy(() => import("./limits.tsx")) },
  { name: "usage", title: "Usage", component: lazy(() => import("./usage.tsx")) },
  { name: "templates", title: "Templates", component: lazy(() => import("./templates/section.tsx")) },
  { name: "workspaces", title: "Workspaces", component: lazy(() => import("./workspaces.tsx")) },
  { name: "nodes", title: "Nodes", component: lazy(() => import("./nodes.tsx")) },
  { name: "lifetimes", title: "Lifetimes", component: lazy(() => import("./lifetimes.tsx")) },
  { name: "retention", title: "Retention", component: lazy(() => import("./retention.tsx")) },
  { name: "audit-log", title: "Audit log", component: lazy(() => import("./audit-log.tsx")) },
  { name: "break-glass", title: "Break-glass", component: lazy(() => import("./break-glass.tsx")) },
  { name: "tokens", title: "Service tokens", component: lazy(() => import("./tokens.tsx")) },
];

export default function AdminScreen({ section }: { section: string | undefined }) {
  const role = useQuery(me).data?.role;
  if (role && role !== "owner" && role !== "admin") {
    return (
      <StateScreen>
        <Empty title="This is not there" level={1}>Administrators see this page.</Empty>
      </StateScreen>
    );
  }
  return <Sections base="/admin" title="Administration" sections={SECTIONS} section={section} />;
}
