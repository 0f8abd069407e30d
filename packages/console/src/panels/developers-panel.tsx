import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiError } from '../api/api-error.ts';
import type { Exchange, Fields } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { words } from '../components/format.ts';
import { KnobControl } from '../knobs/knob-panel.tsx';
import { startValues } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';
import { CodeBox } from './copy-box.tsx';
import { Snippets, Tabs } from './snippets.tsx';

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
      <Tabs
        label="For developers"
        names={Object.keys(TABS) as Tab[]}
        chosen={tab.value}
        onChoose={(name) => {
          tab.value = name;
        }}
      />
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
  const send = async (method: string, path: string, body?: Fields) => {
    try {
      last.value = await state.client.send(method, path, body);
      return JSON.parse(last.value.answer) as Fields;
    } catch (error) {
      if (error instanceof ApiError)
        last.value = { method, path: `/${path}`, status: 0, answer: error.message, milliseconds: 0 };
      return {};
    }
  };
  const reset = async () => {
    const again = session.value === undefined ? {} : { session_id: session.value };
    const { session_id } = await send('POST', 'reset', { ...state.resetOptions(), ...again });
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
          void send('POST', 'step', { ...named, action: action.value });
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
        <div class="send">
          <Button text="Reset" onClick={() => void reset()} />
          <Button look="primary" text="Step" type="submit" disabled={session.value === undefined} />
          <Button
            text="State"
            disabled={session.value === undefined}
            onClick={() => void send('GET', query)}
          />
          {state.abilities.value.grader && (
            <Button
              text="Grade"
              disabled={session.value === undefined}
              onClick={() => void send('POST', 'grader', named)}
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
      <SchemaTable title="Action" schema={schemas?.action ?? {}} />
      <SchemaTable title="Observation" schema={schemas?.observation ?? {}} />
      <SchemaTable title="State" schema={schemas?.state ?? {}} />
    </>
  );
}

function SchemaTable({ title, schema }: { title: string; schema: Fields }): JSX.Element {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Fields>);
  return (
    <section>
      <h3>{title}</h3>
      <table class="schema">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {properties.map(([name, property]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>{typeText(property)}</td>
              <td>{String(property.description ?? '')}</td>
            </tr>
          ))}
        </tbody>
      </table>
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
