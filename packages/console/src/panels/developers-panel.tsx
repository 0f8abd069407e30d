import { type Signal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiError } from '../api/transport.ts';
import type { Exchange, Fields } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { words } from '../components/format.ts';
import { KnobControl } from '../knobs/knob-panel.tsx';
import { startValues } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';
import { CodeBox, CopyButton, Table } from './copy-box.tsx';

const TABS = {
  Try: RequestForm,
  Requests: ExchangeLog,
  Snippets,
  Schema: SchemaTables,
} as const;
type Tab = keyof typeof TABS;

/** For those who write clients: requests to try, what this page sends, code to copy, the schemas. */
export function DevelopersPanel(): JSX.Element {
  const tab = useSignal<Tab>('Try');
  const Contents = TABS[tab.value];
  return (
    <>
      <Tabs label="For developers" names={Object.keys(TABS) as Tab[]} chosen={tab} />
      <Contents />
      <p class="fine">
        <a href="../docs">Every route, to try out</a> · <a href="../openapi.json">openapi.json</a>
      </p>
    </>
  );
}

/** The action's schema as a form, sent in a session of its own, with the raw request and answer. */
function RequestForm(): JSX.Element {
  const state = useConsole();
  const knobs = state.knobs.value;
  const action = useSignal<Fields>(startValues(knobs, state.chosenTask.value?.default_action));
  const session = useSignal<string | undefined>(undefined);
  const last = useSignal<Exchange | undefined>(undefined);
  const send = async (path: string, body?: Fields) => {
    try {
      last.value = await state.client.send(path, body);
      return JSON.parse(last.value.answer) as Fields;
    } catch (error) {
      if (error instanceof ApiError) last.value = state.client.exchanges.value[0];
      return {};
    }
  };
  const reset = async () => {
    const again = session.value === undefined ? {} : { session_id: session.value };
    const { session_id } = await send('reset', { ...state.resetOptions(), ...again });
    if (typeof session_id === 'string') session.value = session_id;
  };
  const named = { session_id: session.value };
  const query = `state?session_id=${encodeURIComponent(session.value ?? '')}`;
  return (
    <section>
      <p class="fine">A session of its own, apart from what the page plays.</p>
      <form
        class="action-form"
        onSubmit={(event) => {
          event.preventDefault();
          void send('step', { ...named, action: action.value });
        }}
      >
        {knobs.map((knob) => (
          <div key={knob.name} class="option">
            <span class="knob-label">{words(knob.name)}</span>
            <code>{`${JSON.stringify(action.value[knob.name]) ?? 'left out'}`}</code>
            <KnobControl
              knob={{ ...knob, name: `form-${knob.name}` }}
              label={words(knob.name)}
              value={action.value[knob.name]}
              locked={false}
              onTurn={(value) => {
                action.value = { ...action.value, [knob.name]: value };
              }}
            />
          </div>
        ))}
        <div class="send gap wrap">
          <Button text="Reset" onClick={() => void reset()} />
          <Button look="primary" text="Step" type="submit" disabled={session.value === undefined} />
          <Button text="State" disabled={session.value === undefined} onClick={() => void send(query)} />
          {state.abilities.value.grader && (
            <Button
              text="Grade"
              disabled={session.value === undefined}
              onClick={() => void send('grader', named)}
            />
          )}
        </div>
      </form>
      {last.value && <ExchangeView exchange={last.value} />}
    </section>
  );
}

/** The latest requests of this page and their answers, raw. */
function ExchangeLog(): JSX.Element {
  const exchanges = useConsole().client.exchanges.value;
  return (
    <section class="exchange-log">
      <p class="fine">The latest requests of this page, the newest first.</p>
      {exchanges.map((exchange, i) => (
        <details key={exchanges.length - i}>
          <summary>
            <b class={exchange.status >= 200 && exchange.status < 300 ? 'good' : 'bad'}>
              {exchange.status || '✕'}
            </b>{' '}
            {exchange.method} <code>{exchange.path}</code>
          </summary>
          <ExchangeView exchange={exchange} />
        </details>
      ))}
    </section>
  );
}

/** Longer answers are cut; the browser's own tools have them whole. */
const LONGEST_SHOWN = 20_000;

/** A request and its answer, as they went over the wire, with the JSON set in lines. */
function ExchangeView({ exchange }: { exchange: Exchange }): JSX.Element {
  const { method, path, request, status, answer, milliseconds } = exchange;
  return (
    <div class="exchange">
      <CodeBox label="Request" text={`${method} ${path}${request ? `\n\n${inLines(request)}` : ''}`} />
      <CodeBox
        label="Answer"
        text={`${status || 'no answer'} · ${milliseconds.toFixed(0)} ms\n\n${inLines(answer)}`}
      />
    </div>
  );
}

function inLines(text: string): string {
  let lines = text;
  try {
    lines = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It is no JSON and is shown as it is.
  }
  return lines.length > LONGEST_SHOWN ? `${lines.slice(0, LONGEST_SHOWN)}\n…` : lines;
}

/** The fields of the action and the observation: name, type, range and meaning. */
function SchemaTables(): JSX.Element {
  const schemas = useConsole().schemas.value;
  return (
    <>
      {(['action', 'observation', 'state'] as const).map((name) => (
        <SchemaTable key={name} title={words(name)} schema={schemas?.[name] ?? {}} />
      ))}
    </>
  );
}

function SchemaTable({ title, schema }: { title: string; schema: Fields }): JSX.Element {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Fields>);
  return (
    <section>
      <h3>{title}</h3>
      <Table
        names={['Field', 'Type', 'Meaning']}
        rows={properties.map(([name, property]) => [
          <code>{name}</code>,
          typeText(property),
          String(property.description ?? ''),
        ])}
      />
    </section>
  );
}

function typeText({ type, enum: values, minimum, maximum, anyOf }: Fields): string {
  if (Array.isArray(values)) return values.map(String).join(' | ');
  if (Array.isArray(anyOf)) return (anyOf as Fields[]).map(typeText).join(' | ');
  const isBounded = (bound: unknown) =>
    typeof bound === 'number' && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const range =
    isBounded(minimum) && isBounded(maximum)
      ? ` ${minimum} to ${maximum}`
      : isBounded(minimum)
        ? ` from ${minimum}`
        : '';
  return `${String(type ?? 'any')}${range}`;
}

const LANGUAGES = ['Python', 'TypeScript', 'curl', 'MCP'] as const;
type Language = (typeof LANGUAGES)[number];

/** Code that plays what the page plays, to copy. */
function Snippets(): JSX.Element {
  const state = useConsole();
  const language = useSignal<Language>('Python');
  const text = snippet(language.value, state.client.url, state.resetOptions(), state.knobValues.value);
  return (
    <section>
      <Tabs label="Language" names={LANGUAGES} chosen={language} />
      <CodeBox label={`${language.value} code`} text={text} />
      <CopyButton text={text} />
    </section>
  );
}

/** A program that plays an episode with one action throughout. @param url of the API, without a slash at the end */
function snippet(language: Language, url: string, reset: Fields, action: Fields): string {
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
  readonly chosen: Signal<Name>;
}

/** A row of names, one of them chosen. */
function Tabs<Name extends string>({ label, names, chosen }: TabsProps<Name>): JSX.Element {
  return (
    <div class="segments tabs" role="radiogroup" aria-label={label}>
      {names.map((name) => (
        <label key={name}>
          <input
            type="radio"
            name={label}
            checked={chosen.value === name}
            onChange={() => {
              chosen.value = name;
            }}
          />
          <span>{name}</span>
        </label>
      ))}
    </div>
  );
}
