import { hash } from 'node:crypto';
import { html, raw } from 'hono/html';
import { sampleValue } from '../validate/sample-value.ts';
import type { OpenApiDocument } from './route-table.ts';

type Operation = OpenApiDocument['paths'][string][string] & {
  readonly path: string;
  readonly method: string;
};

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.1rem; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: 0 1rem; }
summary { cursor: pointer; padding: .6rem 0; }
summary b { display: inline-block; min-width: 4rem; text-transform: uppercase; font-size: .8rem; }
summary code { font-weight: 600; margin-right: .75rem; }
pre, textarea { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow: auto; max-height: 24rem; border: 1px solid var(--line); border-radius: .4rem; padding: .6rem; }
textarea, input { width: 100%; box-sizing: border-box; padding: .4rem; }
label { display: block; margin: .5rem 0; }
button { margin: .5rem 0; padding: .4rem 1rem; }
`;

/** Sends the form of a route and shows the answer below it. */
const SCRIPT = `
for (const form of document.querySelectorAll('form')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const output = form.querySelector('output');
    const query = new URLSearchParams();
    let path = form.dataset.path.slice(1);
    for (const input of form.querySelectorAll('input')) {
      if (input.dataset.in === 'path') path = path.replace('{' + input.name + '}', encodeURIComponent(input.value));
      else if (input.value) query.set(input.name, input.value);
    }
    const body = form.querySelector('textarea')?.value;
    output.textContent = '…';
    try {
      const response = await fetch(path + (query.size ? '?' + query : ''), {
        method: form.dataset.method,
        ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
      });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      output.textContent = response.status + ' ' + response.statusText + '\\n' + shown;
    } catch (error) {
      output.textContent = String(error);
    }
  });
}
`;

/** Content security policy of the page: nothing runs but its own script, which asks only its own server. */
export const DOCS_POLICY = [
  "default-src 'none'",
  `script-src '${sourceHash(SCRIPT)}'`,
  `style-src '${sourceHash(STYLE)}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** The documentation of an API as one page that asks nothing of any other server. */
export function docsPage(document: OpenApiDocument) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  );
  const tags = [...new Set(operations.flatMap((operation) => operation.tags))];
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width" />
    <title>${document.info.title}</title>
    <link rel="icon" href="data:," />
    <style>${raw(STYLE)}</style>
  </head>
  <body>
    <h1>${document.info.title}</h1>
    ${document.info.description.split('\n\n').map((paragraph) => html`<p>${withCode(paragraph)}</p>`)}
    <p>API version ${document.info.version} · <a href="openapi.json">openapi.json</a></p>
    ${tags.map(
      (tag) => html`<h2>${tag}</h2>
        ${operations
          .filter((operation) => operation.tags.includes(tag))
          .map((operation) => operationSection(operation))}`,
    )}
    <script>${raw(SCRIPT)}</script>
  </body>
</html>`;
}

function sourceHash(source: string): string {
  return `sha256-${hash('sha256', source, 'base64')}`;
}

/** A text with what stands between backticks as code. */
function withCode(text: string) {
  return text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part));
}

function operationSection(operation: Operation) {
  const request = operation.requestBody?.content['application/json'].schema;
  return html`<details>
    <summary><b>${operation.method}</b> <code>${operation.path}</code> ${operation.summary}</summary>
    ${operation.description ? html`<p>${withCode(operation.description)}</p>` : ''}
    <form data-method="${operation.method.toUpperCase()}" data-path="${operation.path}">
      ${(operation.parameters ?? []).map(
        (parameter) => html`<label
          >${parameter.name} ${parameter.description ?? ''}
          <input name="${parameter.name}" data-in="${parameter.in}" />
        </label>`,
      )}
      ${request ? html`<label>Body <textarea rows="6">${pretty(sampleValue(request) ?? null)}</textarea></label>` : ''}
      <button>Send</button>
      <pre><output></output></pre>
    </form>
    ${request ? html`<h3>Request</h3><pre>${pretty(request)}</pre>` : ''}
    <h3>Responses</h3>
    ${Object.entries(operation.responses).map(([status, response]) => {
      const schema = response.content?.['application/json']?.schema;
      return html`<p><b>${status}</b> ${response.description}</p>
        ${status === '200' && schema ? html`<pre>${pretty(schema)}</pre>` : ''}`;
    })}
  </details>`;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
