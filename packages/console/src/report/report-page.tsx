import { type JSX, render } from 'preact';
import { startTheme } from '../charts/palette.ts';
import { PageHeader } from '../components/controls.tsx';
import { Notes, PlanReport, type Report, TrainingReport } from './sections.tsx';
import { TuneReport } from './tune-report.tsx';

startTheme();
const report: Report = JSON.parse(document.getElementById('report')!.textContent);
render(<ReportPage report={report} />, document.getElementById('page')!);

function ReportPage({ report }: { report: Report }): JSX.Element {
  const { title, lead, notes = [] } = report;
  return (
    <>
      <PageHeader title={title} />
      <main class="plan">
        <p class="lead muted">{lead}</p>
        <Result report={report} />
        {notes.length > 0 && <Notes notes={notes} />}
      </main>
    </>
  );
}

function Result({ report }: { report: Report }): JSX.Element {
  switch (report.kind) {
    case 'plan':
      return <PlanReport result={report.result} />;
    case 'tune':
      return <TuneReport results={report.result} />;
    case 'training':
      return <TrainingReport metrics={report.result} />;
  }
}
