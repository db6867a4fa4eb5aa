// Shows the chat that docs/people.md has for React: the server, the agent and the id are in the query.

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "documented-chat";

const { server, agent, id } = Object.fromEntries(new URLSearchParams(location.search));

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <Chat server={server} agent={agent} id={id} />
  </StrictMode>,
);
