import type { Chart } from '@servegym/operators/report';
import { type JSX, render } from 'preact';
import { startTheme } from '../charts/palette.ts';
import { XYChartBox } from '../charts/xy-chart.tsx';
import { Button, PageHeader, Select } from '../components/controls.tsx';
import { count } from '../components/format.ts';
import { Sections } from '../report/sections.tsx';
import { Planning, type SearchState, type TypedLimits } from './plan-client.ts';

/** Traffic without a file: by default that of a chat, four requests a second. */
const TRAFFIC_FIELDS = [
  ['perSecond', 'Requests/s', 4, 0.001],
  ['inputTokens', 'Prompt tokens', 700, 1],
  ['outputTokens', 'Output tokens', 150, 1],
] as const;
const SLO_FIELDS = [
  ['ttftS', 'TTFT p99, s', 1, 0.01],
  ['tpotMs', 'TPOT p99, ms', 50, 0.1],
] as const;
/** No number of the form is larger. */
const MOST = 1e6;

startTheme();
const planning = new Planning(new URL('../', document.baseURI));
render(<PlanPage planning={planning} />, document.getElementById('plan')!);

/** Asks for a trace, a model and an SLO, and shows the plans as they are found. */
function PlanPage({ planning }: { planning: Planning }): JSX.Element {
  const fault = planning.fault.value;
  return (
    <>
      <PageHeader
        title="ServeGym plan"
        subtitle="Which GPUs, and how many"
        links={
          <a class="button quiet" href="../web/">
            Console
          </a>
        }
      />
      <main class="plan">
        <p class="lead muted">
          Say how much traffic comes, or drop a trace of it, pick a model and an SLO: a simulator finds the
          settings, the number of GPUs and the price for each kind of GPU.
        </p>
        <PlanForm planning={planning} />
        {fault && (
          <p class="problem row" role="alert">
            {fault}
          </p>
        )}
        <Answer planning={planning} />
      </main>
    </>
  );
}

function PlanForm({ planning }: { planning: Planning }): JSX.Element {
  const { models, model, trace, taken, underWay, needsToken } = planning;
  return (
    <form
      class="panel plan-form"
      onSubmit={(event) => {
        event.preventDefault();
        const typed = new FormData(event.currentTarget);
        void planning.start(Object.fromEntries(typed) as unknown as TypedLimits);
      }}
    >
      <TraceDrop planning={planning} />
      <div class="plan-fields row wrap">
        {!trace.value && TRAFFIC_FIELDS.map(numberField)}
        <div class="grid small">
          <span class="muted">Model</span>
          <Select
            aria-label="Model"
            value={model.value}
            options={models.value.map(({ name }) => ({ value: name, text: name }))}
            onChoose={(name) => {
              model.value = name;
            }}
          />
        </div>
        {SLO_FIELDS.map(numberField)}
        <div class="gap wrap">
          {underWay.value ? (
            // Keys, so that a click on one is not taken for one on the other in its place.
            <Button text="Stop" key="stop" onClick={() => underWay.value?.abort()} />
          ) : (
            <Button
              look="primary"
              text="Plan"
              key="plan"
              type="submit"
              disabled={models.value.length === 0 || taken.value.length === 0}
            />
          )}
          {trace.value && (
            <Button
              text="Without the trace"
              onClick={() => {
                trace.value = undefined;
              }}
            />
          )}
        </div>
      </div>
      <GpuChoices planning={planning} />
      {needsToken.value && (
        <label class="grid small">
          <span>Token of the server</span>
          <input
            type="password"
            autocomplete="current-password"
            onChange={(event) => planning.enterToken(event.currentTarget.value)}
          />
        </label>
      )}
    </form>
  );
}

function numberField([name, label, initial, least]: (typeof TRAFFIC_FIELDS | typeof SLO_FIELDS)[number]) {
  return (
    <label key={name} class="grid small">
      <span class="muted">{label}</span>
      <input
        type="number"
        name={name}
        min={least}
        max={MOST}
        step="any"
        required
        defaultValue={`${initial}`}
      />
    </label>
  );
}

function TraceDrop({ planning: { trace } }: { planning: Planning }): JSX.Element {
  const choose = async (file: File | undefined) => {
    if (file) trace.value = { name: file.name, text: await file.text() };
  };
  return (
    <label
      class="drop grid"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void choose(event.dataTransfer?.files[0]);
      }}
    >
      <b>{trace.value ? trace.value.name : 'Have a trace? Drop it here, or choose a file'}</b>
      <span class="fine">
        {trace.value
          ? `${count(trace.value.text.trimEnd().split('\n').length - 1)} lines`
          : 'CSV or JSON lines with arrival time, prompt and output tokens; also exports of AIPerf, GuideLLM, vLLM'}
      </span>
      <input
        type="file"
        aria-label="Trace"
        accept=".csv,.jsonl,.json,.txt"
        onChange={(event) => void choose(event.currentTarget.files?.[0])}
      />
    </label>
  );
}

function GpuChoices({ planning: { gpus, taken, leftOut } }: { planning: Planning }): JSX.Element {
  return (
    <details>
      <summary>
        GPUs:{' '}
        {taken.value.length === gpus.value.length ? 'all' : `${taken.value.length} of ${gpus.value.length}`}
      </summary>
      <div class="gpu-choices row wrap">
        {gpus.value.map((gpu) => (
          <label key={gpu} class="row">
            <input
              type="checkbox"
              checked={!leftOut.value.has(gpu)}
              onChange={(event) => {
                const next = new Set(leftOut.value);
                if (event.currentTarget.checked) next.delete(gpu);
                else next.add(gpu);
                leftOut.value = next;
              }}
            />
            {gpu}
          </label>
        ))}
      </div>
    </details>
  );
}

function searchText({ stage, share, simulations, rate, best, correlation }: SearchState): string {
  const looks =
    best === null ? [] : [`cheapest so far about ${best.engines} × ${best.profile}, ${best.weights}`];
  const agrees = correlation === null ? [] : [`rank correlation of parts ${correlation.toFixed(2)}`];
  const done = `${stage} ${Math.round(100 * share)} %`;
  return [done, `${simulations} simulations, ${Math.round(rate)} a second`, ...looks, ...agrees].join(' · ');
}

/** How the price of what looks cheapest falls while the search goes on. */
function courseChart(course: Planning['answer']['value']['course']): Chart {
  return {
    label: 'Price of what looks cheapest, by simulations',
    x: { title: 'simulations', unit: 'count' },
    y: { title: 'USD an hour, cheapest so far', unit: 'dollars' },
    lines: [{ look: 'first', points: course }],
    height: 160,
  };
}

/** The plans found so far, or in the end; before, an example. */
function Answer({ planning }: { planning: Planning }): JSX.Element | null {
  const { sections, isExample, isStopped, found, search, course, progress, result } = planning.answer.value;
  const [done, of] = progress;
  const isUnderWay = planning.underWay.value !== undefined;
  if (!isUnderWay && !result && !isStopped && !isExample) return null;
  return (
    <section class="sections" aria-label={isExample ? 'Example' : 'Plans'}>
      {isExample && (
        <p>
          <b>An example.</b> Plan for your own traffic above.
        </p>
      )}
      {(isUnderWay || isStopped) && (
        <section class="panel plan-answer" aria-busy={isUnderWay}>
          <p role="status">
            {isUnderWay
              ? `Planning: ${of === 0 ? 'reading the trace' : `${done} of ${of} kinds of engines`}, ${found} plans so far.`
              : `Stopped: ${found} plans.`}
          </p>
          {isUnderWay && <progress aria-label="Profiles planned" value={done} max={of || 1} />}
          {isUnderWay && search && <p>{searchText(search)}</p>}
          {course.length > 1 && <XYChartBox chart={courseChart(course)} />}
        </section>
      )}
      <Sections sections={sections} />
      {result && result.plans.length > 0 && (
        <a
          class="button small"
          href={`data:application/json,${encodeURIComponent(JSON.stringify(result, null, 2))}`}
          download="plans.json"
        >
          Save as JSON
        </a>
      )}
    </section>
  );
}
