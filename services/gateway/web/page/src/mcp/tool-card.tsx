/** The card of a call of an MCP tool: who answers, how far it is, and all parts of the result in order. */
import "./mcp.css";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Card } from "../cards/card.tsx";
import { Output, Problem } from "../cards/execute.tsx";
import { argsOf, type CardProps, record, string, toolWords } from "../cards/outcome.ts";
import { bytes } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { JsonTree } from "./json-tree.tsx";
import { servers } from "./servers.ts";

/** What a browser shows as a picture; anything else is offered as a file. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function McpCard({ call, result, standing }: CardProps) {
  const known = useQuery(servers).data?.items.find((each) => each.id === call.mcp_server_id);
  const [slug, tool] = halves(call.tool_name);
  const told = record(result?.result);
  const parts = Array.isArray(told.content) ? told.content.map(record) : [];
  const intent = string(argsOf(call).model_intent);
  return (
    <Card
      icon="tool"
      standing={standing}
      isOpen={standing === "failed" || parts.some((each) => each.type === "image")}
      label={
        <>
          <Visible>{intent || toolWords(tool)}</Visible>
          <span className="card-note"> {known?.display_name ?? slug}</span>
        </>
      }
      facts={standing === "running" && result?.progress ? <Progress {...result.progress} /> : null}
    >
      <h4 className="card-heading">Arguments</h4>
      <JsonTree value={call.args ?? call.args_delta ?? {}} />
      {parts.length > 0 && <h4 className="card-heading">Result</h4>}
      {parts.map((each, index) => (
        <ResultPart key={index} part={each} />
      ))}
      {!result?.outcome && result?.result_delta && <Output text={result.result_delta} isRunning />}
      {standing === "unknown" && <p className="card-note">It is not known whether this call ran.</p>}
      <Problem told={told} />
    </Card>
  );
}

function halves(name: string): [string, string] {
  const at = name.indexOf("__");
  return at < 0 ? ["", name] : [name.slice(0, at), name.slice(at + 2)];
}

function Progress({ progress, total, message }: { progress: number; total?: number; message?: string }) {
  return (
    <span>
      {total ? <progress className="mcp-progress" aria-label="Progress" max={total} value={progress} /> : progress}{" "}
      <Visible>{message ?? ""}</Visible>
    </span>
  );
}

function ResultPart({ part }: { part: Record<string, unknown> }) {
  const fileId = string(part.file_id);
  const note = part.note ? <p className="card-note">{string(part.note)}</p> : null;
  const whole = fileId && (
    <a className="button is-small" href={`/api/v1/files/${encodeURIComponent(fileId)}`} download>
      Download {typeof part.size_bytes === "number" && bytes(part.size_bytes)}
    </a>
  );
  return (
    <div className="mcp-part">
      <PartContent part={part} />
      {whole}
      {note}
    </div>
  );
}

function PartContent({ part }: { part: Record<string, unknown> }) {
  const mediaType = string(part.media_type);
  if (typeof part.text === "string") return <TextContent text={part.text} />;
  if (part.type === "structured") return <JsonTree value={part.data} />;
  if (typeof part.data === "string") return <Data data={part.data} mediaType={mediaType} />;
  // Addresses of third parties are shown, never followed by themselves.
  if (part.type === "resource_link") return <p className="card-note"><Visible>{`${string(part.name)} ${string(part.uri)}`}</Visible></p>;
  return part.file_id ? null : <JsonTree value={part} />;
}

/** A text; one that is JSON as a tree. */
function TextContent({ text }: { text: string }) {
  const value = jsonOf(text);
  if (value !== null && typeof value === "object") return <JsonTree value={value} />;
  return <p className="mcp-text"><Visible>{text}</Visible></p>;
}

function jsonOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function Data({ data, mediaType }: { data: string; mediaType: string }) {
  const url = useBlob(data, mediaType);
  if (!url) return null;
  if (PICTURES.has(mediaType)) return <img className="mcp-picture" src={url} alt="Picture in the result of the tool" />;
  return <a className="button is-small" href={url} download="result">Download {mediaType}</a>;
}

/** Return the address of bytes that are given as base64, as long as the card is shown. */
function useBlob(data: string, mediaType: string): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    let made: string;
    try {
      const content = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
      const type = PICTURES.has(mediaType) ? mediaType : "application/octet-stream";
      made = URL.createObjectURL(new Blob([content], { type }));
    } catch {
      return;
    }
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, mediaType]);
  return url;
}
