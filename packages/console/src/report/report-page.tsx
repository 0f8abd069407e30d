import type { Page } from '@servegym/operators/report';
import { render } from 'preact';
import { startTheme } from '../charts/palette.ts';
import { PageHeader } from '../components/controls.tsx';
import { Sections } from './sections.tsx';

startTheme();
const { title, lead, sections }: Page = JSON.parse(document.getElementById('report')!.textContent);
render(
  <>
    <PageHeader title={title} />
    <main class="plan">
      <p class="lead muted">{lead}</p>
      <Sections sections={sections} />
    </main>
  </>,
  document.getElementById('page')!,
);
