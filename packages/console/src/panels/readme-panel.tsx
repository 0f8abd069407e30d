import { marked } from 'marked';
import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';

/** What the environment says of itself, and where its documentation is. */
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
        <div class="readme" dangerouslySetInnerHTML={{ __html: marked.parse(readme, { async: false }) }} />
      ) : (
        <p>{description}</p>
      )}
    </>
  );
}
