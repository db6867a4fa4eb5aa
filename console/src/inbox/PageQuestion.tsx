import { type AskedPage, declined, done } from "./page.ts";

/** The page that is to be opened, and whether it was. What opens it learns nothing of this page. */
export function PageQuestion({ page, isBusy, why, give }: { page: AskedPage; isBusy: boolean; why: string; give: (answer: string) => void }) {
  return (
    <>
      <div class="askedpage">
        <a class="button" href={page.address} target="_blank" rel="noreferrer noopener">
          Open the page at <b>{page.host}</b>
        </a>
        <p class="small">
          <code>
            <bdi>{page.address}</bdi>
          </code>
        </p>
        {page.server && (
          <p class="small">
            It is not of the MCP server, which is at <b>{page.server}</b>.
          </p>
        )}
        {!page.isEncrypted && <p class="small bad">The connection to it is not encrypted.</p>}
        <p class="quiet small">Enter nothing there that {page.host} should not know.</p>
      </div>
      <div class="actions">
        <button type="button" class="button primary" disabled={isBusy || why !== ""} title={why} onClick={() => give(done)}>
          It is done
        </button>
        <button type="button" class="button danger" disabled={isBusy || why !== ""} title={why} onClick={() => give(declined)}>
          Decline
        </button>
      </div>
    </>
  );
}
