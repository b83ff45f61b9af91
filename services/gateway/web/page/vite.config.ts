import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vitest/config";

const BUILT = "../built";
const COMPRESSED = /\.(css|html|js|svg|webmanifest)$/;
const MANIFEST = {
  name: "Parley",
  short_name: "Parley",
  description: "Chats with agents.",
  start_url: "/",
  scope: "/",
  display: "standalone",
  background_color: "#f6f4ee",
  theme_color: "#2a6454",
};

/** Write .br and .gz files beside those that shrink; the gateway chooses between them. */
function compress(): Plugin {
  return {
    name: "compress",
    apply: "build",
    closeBundle() {
      const root = join(import.meta.dirname, BUILT);
      // A build that failed closes too; an error here would be printed in place of its own.
      if (!existsSync(root)) return;
      for (const name of readdirSync(root, { recursive: true }) as string[]) {
        const path = join(root, name);
        if (!COMPRESSED.test(name) || !statSync(path).isFile()) continue;
        const plain = readFileSync(path);
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: quality }));
        writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
      }
    },
  };
}

/** Write the manifest with the hashed name of the icon, and name it in the document. */
function manifest(): Plugin {
  const made = { name: "", text: "" };
  return {
    name: "manifest",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(_html, { bundle, path }) {
        const icon = Object.keys(bundle ?? {}).find((name) => /mark-[^/]*\.svg$/.test(name));
        if (!icon || path !== "/index.html") return [];
        const icons = [{ src: `/${icon}`, sizes: "any", type: "image/svg+xml", purpose: "any" }];
        made.text = JSON.stringify({ ...MANIFEST, icons });
        made.name = `page-${createHash("sha256").update(made.text).digest("hex").slice(0, 8)}.webmanifest`;
        return [{ tag: "link", attrs: { rel: "manifest", href: `/assets/${made.name}` }, injectTo: "head" as const }];
      },
    },
    closeBundle() {
      if (made.name) writeFileSync(join(import.meta.dirname, BUILT, "assets", made.name), made.text);
    },
  };
}

export default defineConfig({
  plugins: [react(), manifest(), compress()],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    // Documents may load files of their own origin only, so nothing becomes a data: address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Terminals need styles of their own making, so they have a document with a policy of its own.
    rolldownOptions: {
      input: ["index.html", "terminal.html", "src/notifications/service-worker.ts"],
      // The browser knows the service worker by its address, so its name stays.
      output: { entryFileNames: ({ name }) => (name === "service-worker" ? "[name].js" : "assets/[name]-[hash].js") },
    },
    target: "es2023",
    reportCompressedSize: false,
  },
  test: {
    include: ["src/**/*.test.ts", "src/**/*.test.tsx"],
    environment: "node",
    // Files share a document. A link that is pressed, also one to a download, must not give it the
    // address of another origin, with which the requests of later files have no valid address.
    environmentOptions: { happyDOM: { settings: { navigation: { disableFallbackToSetURL: true } } } },
    isolate: false,
    // A test that is given up leaves what it began to those after it; busy machines are slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
