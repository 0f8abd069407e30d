import type { JSX } from 'preact';
import type { Exchange } from '../api/wire.ts';
import { useConsole } from '../components/console-context.ts';
import { CodeBox } from './copy-box.tsx';

/** The latest requests of this page and their answers, raw. */
export function ExchangeLog(): JSX.Element {
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
export function ExchangeView({ exchange }: { exchange: Exchange }): JSX.Element {
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
