import "./ui/styles/tokens.css";
import "./ui/styles/base.css";
import "./ui/styles/ui.css";
import "./shell/shell.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/queries.ts";
import { whenSignedOut } from "./api/transport.ts";
import { Routes } from "./routes.tsx";
import { goToSignIn, rememberedAddress } from "./sign-in/session.ts";
import { ChunkBoundary } from "./shell/chunk-boundary.tsx";
import { LiveRegion } from "./ui/announce.tsx";
import { readStored } from "./ui/stores/stored.ts";
import { applyTheme } from "./ui/theme.ts";
import { Toasts } from "./ui/toasts.tsx";

applyTheme();
whenSignedOut(goToSignIn);
const remembered = rememberedAddress();
if (remembered) history.replaceState(null, "", remembered);

// What is notified is read only where notifications were turned on.
if (readStored("parley.notifications") && location.pathname !== "/sign-in") void import("./notifications/own.ts").then(({ renew }) => renew()).catch(() => {});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <ChunkBoundary>
          <Routes />
        </ChunkBoundary>
        <LiveRegion />
        <Toasts />
      </QueryClientProvider>
    </StrictMode>,
  );
}
