import type { JSX } from 'preact';
import { exchanges } from '../state/exchange-log.ts';
import { ExchangeView } from './exchange-view.tsx';

/** What this page has asked the server lately, raw. */
export function ExchangeLog(): JSX.Element {
  return (
    <section class="exchange-log">
      <p class="fine">The latest requests of this page, the newest first.</p>
      {exchanges.value.map((exchange, i) => (
        <details key={exchanges.value.length - i}>
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
