import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { bytes } from "../lib/text.ts";
import { JsonBox } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Cut } from "./values.ts";

/** An execution, as paths name it. */
export interface Ids extends Record<string, string> {
  id: string;
  executionId: string;
}

interface ValueProps {
  ids: Ids;
  value: unknown;
  title: string;
}

/** A value of an event; one that is not in memory is read. */
export function Value({ ids, value, title }: ValueProps) {
  return value instanceof Cut ? <Read key={`${value.seq} ${value.field}`} ids={ids} cut={value} title={title} /> : <JsonBox value={value} title={title} />;
}

function Read({ ids, cut, title }: { ids: Ids; cut: Cut; title: string }) {
  const query = { after: cut.seq - 1, limit: 1 };
  const page = useResource((signal) => get("/workflows/{id}/executions/{executionId}/events", { path: ids, query, signal }), [ids, query]);
  const event = page.data?.events[0];
  if (page.error) return <Problem error={page.error} retry={page.reload} />;
  if (event) return <JsonBox value={cut.of(event)} title={title} />;
  return (
    <div class="jsonbox">
      <header>
        <strong class="h3">{title}</strong>
        <span class="quiet small">{bytes(cut.letters)} are read…</span>
      </header>
      <bdi class="quiet">{cut.preview}</bdi>
    </div>
  );
}
