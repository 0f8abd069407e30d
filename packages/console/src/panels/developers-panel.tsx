import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ExchangeLog } from './exchange-log.tsx';
import { RequestForm } from './request-form.tsx';
import { SchemaTables } from './schema-tables.tsx';
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
