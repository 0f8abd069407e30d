import { batch, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { ApiError } from '../api/api-error.ts';
import type { Fields } from '../api/wire.ts';
import { BrandMark, ThemeButton } from '../components/brand.tsx';
import { amount, count, dollars, latencyText, percent } from '../components/format.ts';
import { CopyBox } from '../panels/copy-box.tsx';
import { saveCsv } from '../panels/csv.ts';
import { FrontChart } from './front-chart.tsx';
import {
  enginesText,
  exampleTrace,
  type Plan,
  type PlanClient,
  type PlannedModel,
  type PlanResult,
  paretoFront,
} from './plan-client.ts';

/** Model that is chosen at first, where the server knows it. */
const FIRST_MODEL = 'Llama-3-8B';
const EXAMPLE = 'example.csv';

/** The traffic that is planned for. */
interface ChosenTrace {
  readonly name: string;
  readonly text: string;
}

/** Asks for a trace, a model and an SLO, and shows the plans as they are found. */
export function PlanPage({ client }: { client: PlanClient }): JSX.Element {
  const models = useSignal<readonly PlannedModel[]>([]);
  const model = useSignal('');
  const left = useSignal<ReadonlySet<string>>(new Set());
  const trace = useSignal<ChosenTrace | undefined>(undefined);
  const ttftS = useSignal('1');
  const tpotMs = useSignal('50');
  const plans = useSignal<readonly Plan[]>([]);
  const progress = useSignal<readonly [done: number, of: number]>([0, 0]);
  const result = useSignal<PlanResult | undefined>(undefined);
  const planning = useSignal<AbortController | undefined>(undefined);
  const isStopped = useSignal(false);
  const fault = useSignal('');
  const needsToken = useSignal(false);

  const tell = (error: unknown) => {
    needsToken.value = error instanceof ApiError && error.isUnauthorized;
    fault.value = (error as Error).message;
  };
  const readModels = async () => {
    try {
      const known = await client.models();
      batch(() => {
        models.value = known;
        model.value = (known.find(({ name }) => name === FIRST_MODEL) ?? known[0]).name;
        fault.value = '';
        needsToken.value = false;
      });
    } catch (error) {
      tell(error);
    }
  };
  useEffect(() => void readModels(), []);

  const gpus = models.value.find(({ name }) => name === model.value)?.gpus ?? [];
  const taken = gpus.filter((gpu) => !left.value.has(gpu));
  const choose = async (file: File | undefined) => {
    if (file) trace.value = { name: file.name, text: await file.text() };
  };
  const start = async () => {
    if (!trace.value) {
      fault.value = 'Drop a trace first, or take the example.';
      return;
    }
    const stop = new AbortController();
    batch(() => {
      planning.value = stop;
      plans.value = [];
      progress.value = [0, 0];
      result.value = undefined;
      fault.value = '';
      isStopped.value = false;
    });
    const { name, text } = trace.value;
    const request = {
      ...{ trace: text, name, model: model.value },
      gpus: taken.length === gpus.length ? [] : taken,
      slo: `ttft_p99=${ttftS.value}s,tpot_p99=${tpotMs.value}ms`,
    };
    try {
      result.value = await client.plan(
        request,
        {
          onPlans(found) {
            plans.value = [...plans.value, ...found];
          },
          onProgress(done, of) {
            progress.value = [done, of];
          },
        },
        stop.signal,
      );
      plans.value = result.value.plans;
    } catch (error) {
      if (stop.signal.aborted) isStopped.value = true;
      else tell(error);
    }
    planning.value = undefined;
  };
  const [done, of] = progress.value;
  const shown = [...plans.value].sort((a, b) => a.usd_per_hour - b.usd_per_hour);
  return (
    <>
      <header class="top-bar">
        <div class="brand">
          <BrandMark />
          <div>
            <h1>ServeGym plan</h1>
            <p>Which GPUs, and how many</p>
          </div>
        </div>
        <nav class="links" aria-label="More">
          <a class="button quiet" href="../web/">
            Console
          </a>
          <ThemeButton />
        </nav>
      </header>
      <main class="plan">
        <p class="lead">
          Drop a trace of your traffic, pick a model and an SLO: a simulator finds the settings, the number of
          GPUs and the price for each kind of GPU.
        </p>
        <form
          class="panel plan-form"
          onSubmit={(event) => {
            event.preventDefault();
            void start();
          }}
        >
          <label
            class="drop"
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              void choose(event.dataTransfer?.files[0]);
            }}
          >
            <b>{trace.value ? trace.value.name : 'Drop a trace here, or choose a file'}</b>
            <span class="fine">
              {trace.value
                ? `${count(trace.value.text.trimEnd().split('\n').length - 1)} lines`
                : 'CSV or JSON lines: arrival time, input tokens, output tokens'}
            </span>
            <input
              type="file"
              aria-label="Trace"
              accept=".csv,.jsonl,.json,.txt"
              onChange={(event) => void choose(event.currentTarget.files?.[0])}
            />
          </label>
          <div class="plan-fields">
            <label>
              <span>Model</span>
              <select
                value={model.value}
                onChange={(event) => {
                  model.value = event.currentTarget.value;
                }}
              >
                {models.value.map(({ name }) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              <span>TTFT p99, s</span>
              <input
                type="number"
                min="0.01"
                step="any"
                required
                value={ttftS.value}
                onInput={(event) => {
                  ttftS.value = event.currentTarget.value;
                }}
              />
            </label>
            <label>
              <span>TPOT p99, ms</span>
              <input
                type="number"
                min="0.1"
                step="any"
                required
                value={tpotMs.value}
                onInput={(event) => {
                  tpotMs.value = event.currentTarget.value;
                }}
              />
            </label>
            <div class="plan-actions">
              {planning.value ? (
                // Keys, so that a click on one is not taken for one on the other in its place.
                <button key="stop" type="button" class="button" onClick={() => planning.value?.abort()}>
                  Stop
                </button>
              ) : (
                <button
                  key="plan"
                  type="submit"
                  class="button primary"
                  disabled={models.value.length === 0 || taken.length === 0}
                >
                  Plan
                </button>
              )}
              <button
                type="button"
                class="button"
                title="2,000 made-up requests, four a second, about 700 tokens in and 150 out"
                onClick={() => {
                  trace.value = { name: EXAMPLE, text: exampleTrace() };
                }}
              >
                Example trace
              </button>
            </div>
          </div>
          <details>
            <summary>
              GPUs: {taken.length === gpus.length ? 'all' : `${taken.length} of ${gpus.length}`}
            </summary>
            <div class="gpu-choices">
              {gpus.map((gpu) => (
                <label key={gpu}>
                  <input
                    type="checkbox"
                    checked={!left.value.has(gpu)}
                    onChange={(event) => {
                      const next = new Set(left.value);
                      if (event.currentTarget.checked) next.delete(gpu);
                      else next.add(gpu);
                      left.value = next;
                    }}
                  />
                  {gpu}
                </label>
              ))}
            </div>
          </details>
          {needsToken.value && (
            <label class="token-field">
              <span>Token of the server</span>
              <input
                type="password"
                autocomplete="current-password"
                onChange={(event) => {
                  client.authorize(event.currentTarget.value);
                  void readModels();
                }}
              />
            </label>
          )}
        </form>
        {fault.value && (
          <p class="problem" role="alert">
            {fault.value}
          </p>
        )}
        {(planning.value || plans.value.length > 0 || result.value || isStopped.value) && (
          <section class="panel plan-answer" aria-label="Plans" aria-busy={planning.value !== undefined}>
            <p role="status">
              {planning.value
                ? `Planning: ${of === 0 ? 'reading the trace' : `${done} of ${of} profiles`}, ${plans.value.length} plans so far.`
                : answerText(result.value, plans.value)}
            </p>
            {planning.value && <progress aria-label="Profiles planned" value={done} max={of || 1} />}
            {plans.value.length > 0 && <FrontChart plans={plans.value} />}
            {shown.length > 0 && <PlanTable plans={shown} />}
            {result.value && shown.length > 0 && (
              <button type="button" class="button small" onClick={() => saveCsv('plans', shown.map(rowOf))}>
                Save as CSV
              </button>
            )}
            {result.value && shown.length > 0 && <Commands plan={shown[0]} />}
            {result.value && <NotPlanned result={result.value} />}
            <p class="fine">
              The figures come from a simulator. Measure one GPU hour on the engine that you choose before you
              buy.
            </p>
          </section>
        )}
      </main>
    </>
  );
}

function answerText(result: PlanResult | undefined, plans: readonly Plan[]): string {
  if (!result) return `Stopped: ${plans.length} plans.`;
  const { requests, requests_simulated, hours, requests_per_s, wall_s } = result;
  const traffic = `${count(requests)} requests in ${amount(hours)} h, ${amount(requests_per_s)} a second; ${count(requests_simulated)} simulated at each load, in ${amount(wall_s)} s.`;
  const [cheapest] = result.plans;
  if (!cheapest) return `No GPU meets the SLO. ${traffic}`;
  const { low, high } = cheapest.confidence.usd_per_hour;
  const first = cheapest.breaks_first === null ? '' : `; ${cheapest.breaks_first} breaks first`;
  return `Cheapest: ${enginesText(cheapest)} (${count(cheapest.gpus)} ${cheapest.gpus === 1 ? 'GPU' : 'GPUs'}) for ${dollars(cheapest.usd_per_hour)} an hour (${dollars(low)} to ${dollars(high)}). They sustain ${amount(cheapest.headroom)} times this load${first}. ${traffic}`;
}

const CONFIDENCE = { high: 'measured', medium: 'kernel tables', low: 'data sheets' } as const;

function PlanTable({ plans }: { plans: readonly Plan[] }): JSX.Element {
  const front = paretoFront(plans);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="plan-table" tabIndex={0} aria-label="Table of plans">
      <table>
        <thead>
          <tr>
            {[
              'Engines and profile',
              'GPUs',
              'USD/h',
              '95 %',
              'Autoscaled',
              'At least',
              'USD/M out',
              'TTFT p99',
              'TPOT p99',
              'Headroom',
              'At 1.5×',
              'Profile from',
            ].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {plans.map((plan) => (
            <tr key={enginesText(plan)} class={front.includes(plan) ? 'on-front' : ''}>
              <th scope="row">
                {enginesText(plan)}
                {plan.router === 'prefix_aware' && ', routed by prefix'}
              </th>
              <td>{count(plan.gpus)}</td>
              <td>{dollars(plan.usd_per_hour)}</td>
              <td>
                {dollars(plan.confidence.usd_per_hour.low)}–{dollars(plan.confidence.usd_per_hour.high)}
              </td>
              <td>{dollars(plan.autoscaled_usd_per_hour)}</td>
              <td>{dollars(plan.lower_bound_usd_per_hour)}</td>
              <td>{dollars(plan.usd_per_million_output_tokens)}</td>
              <td>{latencyText(plan.ttft_p99_ms)}</td>
              <td>{latencyText(plan.tpot_p99_ms)}</td>
              <td>{amount(plan.headroom)}×</td>
              <td>{percent(plan.good_at_1_5_times)}</td>
              <td>{CONFIDENCE[plan.confidence.level]}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="fine">
        Bold: no cheaper plan has a lower TTFT p99. 95 %: over stretches of the traffic, widened by the error
        of the profile. Autoscaled: the mean bill when engines follow the demand. At least: no schedule on
        these GPUs costs less. At 1.5×: share of the requests that meet every limit when 1.5 times the traffic
        comes.
      </p>
    </section>
  );
}

/** A plan with the first of its commands, as a row of CSV. */
function rowOf({ commands, ...plan }: Plan): Fields {
  return { ...plan, command: commands[0]?.line };
}

/** How to start the cheapest plan. */
function Commands({ plan }: { plan: Plan }): JSX.Element {
  return (
    <section class="commands">
      {plan.commands.map(({ engine, pool, line, not_expressed }) => (
        <div key={`${engine} ${pool}`}>
          <h2>
            Start {pool ?? 'it'} with {engine}
          </h2>
          <CopyBox label={`Command for ${pool === undefined ? '' : `${pool}, `}${engine}`} text={line} />
          {not_expressed.length > 0 && <p class="fine">Not in the line: {not_expressed.join('; ')}</p>}
        </div>
      ))}
    </section>
  );
}

function NotPlanned({ result }: { result: PlanResult }): JSX.Element | null {
  const refused = result.not_planned;
  if (refused.length === 0) return null;
  return (
    <details>
      <summary>Not planned: {refused.length}</summary>
      <ul>
        {refused.map(({ profile, precision, reason }) => (
          <li key={`${profile} ${precision}`} class="fine">
            {profile}, {precision}: {reason}
          </li>
        ))}
      </ul>
    </details>
  );
}
