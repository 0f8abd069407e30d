import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Fields } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { useConsole } from '../state/console-state.ts';
import { CodeBox } from './copy-box.tsx';

const LANGUAGES = ['Python', 'TypeScript', 'curl', 'MCP'] as const;
type Language = (typeof LANGUAGES)[number];

/** Code that plays what the page plays, to copy. */
export function Snippets(): JSX.Element {
  const state = useConsole();
  const language = useSignal<Language>('Python');
  const isCopied = useSignal(false);
  const text = snippet(language.value, {
    url: state.client.url,
    reset: state.resetOptions(),
    action: state.knobValues.value,
  });
  return (
    <section>
      <Tabs
        label="Language"
        names={LANGUAGES}
        chosen={language.value}
        onChoose={(name) => {
          language.value = name;
          isCopied.value = false;
        }}
      />
      <CodeBox label={`${language.value} code`} text={text} />
      <Button
        text={isCopied.value ? 'Copied' : 'Copy'}
        onClick={() =>
          void navigator.clipboard?.writeText(text).then(() => {
            isCopied.value = true;
          })
        }
      />
    </section>
  );
}

/** Episode of a snippet. */
interface SnippetEpisode {
  /** Address of the API, without a slash at the end. */
  readonly url: string;
  readonly reset: Fields;
  readonly action: Fields;
}

/** A program that plays an episode with one action throughout. */
function snippet(language: Language, { url, reset, action }: SnippetEpisode): string {
  switch (language) {
    case 'Python':
      return `# pip install openenv
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url=${JSON.stringify(url)}) as env:
    result = env.reset(${Object.entries(reset)
      .map(([name, value]) => `${name}=${python(value)}`)
      .join(', ')})
    total = 0.0
    while not result.done:
        action = ${python(action, '        ')}
        result = env.step(action)
        total += result.reward
    print(total)
`;
    case 'TypeScript':
      return `import { connect } from '@servegym/openenv/client';

const env = await connect(${JSON.stringify(url)});
try {
  let { done } = await env.reset(${JSON.stringify(reset)});
  let total = 0;
  while (!done) {
    const action = ${JSON.stringify(action, null, 2).replaceAll('\n', '\n    ')};
    const result = await env.step(action);
    total += result.reward ?? 0;
    done = result.done;
  }
  console.log(total, await env.grade());
} finally {
  await env.close();
}
`;
    case 'curl':
      return `# The answer to the reset names the session.
SESSION=$(curl -s ${url}/reset -H 'content-type: application/json' \\
  -d ${shell(reset)} | sed 's/.*"session_id":"\\([^"]*\\)".*/\\1/')
curl -s ${url}/step -H 'content-type: application/json' \\
  -d '{"session_id":"'$SESSION'","action":${JSON.stringify(action).replaceAll("'", "'\\''")}}'
curl -s ${url}/grader -H 'content-type: application/json' -d '{"session_id":"'$SESSION'"}'
`;
    case 'MCP':
      return `{
  "mcpServers": {
    "servegym": { "type": "http", "url": ${JSON.stringify(`${url}/mcp`)} }
  }
}
`;
  }
}

function python(value: unknown, indent = ''): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map((item) => python(item)).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`);
  if (indent === '') return `{${entries.join(', ')}}`;
  return `{\n${entries.map((entry) => `${indent}    ${entry},\n`).join('')}${indent}}`;
}

function shell(value: unknown): string {
  return `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
}

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly names: readonly Name[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
}

/** A row of names, one of them chosen. */
export function Tabs<Name extends string>({ label, names, chosen, onChoose }: TabsProps<Name>): JSX.Element {
  return (
    <div class="segments tabs" role="radiogroup" aria-label={label}>
      {names.map((name) => (
        <label key={name}>
          <input type="radio" name={label} checked={chosen === name} onChange={() => onChoose(name)} />
          <span>{name}</span>
        </label>
      ))}
    </div>
  );
}
