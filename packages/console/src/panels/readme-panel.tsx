import { marked } from 'marked';
import type { JSX } from 'preact';
import { useConsole } from '../state/console-state.ts';

/** The server's address in the readme of an environment, which does not know where it is served. */
const SOME_SERVER = 'http://localhost:7860';

/** Markdown as HTML. Code that is wider than the panel can be scrolled by the keyboard as well. */
function html(markdown: string): string {
  return marked.parse(markdown, { async: false }).replaceAll('<pre>', '<pre tabindex="0">');
}

/** The environment's own readme, with links to its documentation. */
export function ReadmePanel(): JSX.Element {
  const state = useConsole();
  const { readme_content: readme, description } = state.environment.value ?? {};
  return (
    <>
      <p>
        <a href="../docs">Every route, to try out</a> · <a href="../openapi.json">openapi.json</a>
      </p>
      {readme ? (
        // The text is the server's own, and the page's policy lets no script of it run.
        <div
          class="readme"
          dangerouslySetInnerHTML={{ __html: html(readme.replaceAll(SOME_SERVER, state.client.url)) }}
        />
      ) : (
        <p>{description}</p>
      )}
    </>
  );
}
