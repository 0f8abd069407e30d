import type { JSX } from 'preact';
import { aroundLog, fromZero } from '../charts/scales.ts';
import { type XYChart, XYChartBox } from '../charts/xy-chart.tsx';
import {
  amount,
  count,
  dollars,
  finePercent,
  latencyText,
  latencyTick,
  percent,
} from '../components/format.ts';
import { Commands, WideTable } from '../plan/plan-answer.tsx';
import { type Settings, settingsText } from '../plan/plan-client.ts';
import { type FoundTune, type LoadPoint, Numbers, type ReportedTune } from './sections.tsx';

type Candidate = FoundTune['candidates'][number];
type Estimate = Candidate['sustained_rps'];

export function TuneReport({ results }: { results: readonly ReportedTune[] }): JSX.Element {
  return (
    <>
      {results.length > 1 && <Comparison results={results} />}
      {results.map((result) => (
        <TuneSection key={result.profile} result={result} />
      ))}
      <p class="fine">
        Sustained: the largest rate of requests at which the SLO holds for one engine, with 95 % intervals
        from a bootstrap over stretches of the traffic. All settings see the same requests and the same random
        draws. The figures come from a simulator: confirm the winner on a real server before you rely on it.
      </p>
    </>
  );
}

function Comparison({ results }: { results: readonly ReportedTune[] }): JSX.Element {
  const rows = results.map((result) => {
    if ('nearest' in result) return [result.profile, 'none meets the SLO', '–', '–', '–', '–'];
    const [winner] = result.candidates;
    const { replicas, usd_per_hour } = result.deployment;
    return [
      result.profile,
      settingsText(winner.settings, defaultsOf(result)),
      estimateText(winner.sustained_rps),
      winner.usd_per_million_output_tokens === null ? '–' : dollars(winner.usd_per_million_output_tokens),
      replicas === null ? 'too many' : count(replicas),
      usd_per_hour === null ? '–' : dollars(usd_per_hour),
    ];
  });
  const names = ['Profile', 'Settings', 'Sustained requests/s', 'USD/M output tokens', 'Engines', 'USD/h'];
  return (
    <section class="panel plan-answer">
      <h2>The profiles compared</h2>
      <WideTable label="The profiles compared" names={names} rows={rows}>
        Sustained: with its 95 % interval. Engines and USD/h: for the whole traffic.
      </WideTable>
    </section>
  );
}

function TuneSection({ result }: { result: ReportedTune }): JSX.Element {
  const { source, impossible } = result.page;
  return (
    <>
      <h2 class="report-part">{result.profile}</h2>
      <p class="lead muted">
        {`${count(result.considered)} configurations considered, ${count(result.simulated_requests)} requests simulated in ${amount(result.wall_s)} s. Profile: ${source}.`}
      </p>
      {'nearest' in result ? (
        <section class="panel plan-answer">
          {impossible.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </section>
      ) : (
        <FoundSections result={result} page={result.page} />
      )}
    </>
  );
}

interface FoundProps {
  readonly result: FoundTune;
  readonly page: ReportedTune['page'];
}

function FoundSections({ result, page }: FoundProps): JSX.Element {
  const { candidates, commands, verdict } = result;
  const [winner] = candidates;
  return (
    <>
      <section class="panel plan-answer">
        <p>
          Settings: {settingsText(winner.settings, defaultsOf(result))}
          {!winner.is_default && '; all others as vLLM’s defaults'}.
        </p>
        <Commands commands={commands} />
      </section>
      <TuneNumbers result={result} />
      <section class="panel plan-answer">
        <h2>Verdict</h2>
        {Object.values(verdict).map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </section>
      <div class="report-charts">
        <section class="panel plan-answer">
          <h2>Load that is sustained against latency</h2>
          <XYChartBox chart={tuneFrontChart(result, page.others)} />
          <p class="fine">The front is that of load, TTFT, TPOT and quality. Larger: a larger TPOT.</p>
        </section>
        <section class="panel plan-answer">
          <h2>Requests within the limits as the load grows</h2>
          <XYChartBox chart={loadChart(page.curves)} />
        </section>
        <section class="panel plan-answer">
          <h2>Intervals</h2>
          <XYChartBox chart={intervalsChart(candidates, defaultsOf(result))} />
        </section>
      </div>
      <section class="panel plan-answer">
        <h2>Ranking</h2>
        <Ranking result={result} />
      </section>
    </>
  );
}

function TuneNumbers({ result: { candidates, deployment } }: { result: FoundTune }): JSX.Element {
  const [{ sustained_rps, over_defaults, usd_per_million_output_tokens: price }] = candidates;
  const { replicas, usd_per_hour } = deployment;
  return (
    <Numbers
      numbers={[
        [amount(sustained_rps.value), `requests/s sustained by one engine (${intervalText(sustained_rps)})`],
        over_defaults === null
          ? ['–', 'vLLM’s defaults sustain nothing']
          : [`${amount(over_defaults.value)}×`, `over vLLM’s defaults (${intervalText(over_defaults)})`],
        replicas === null
          ? ['too few', 'replicas were allowed for this traffic']
          : [
              count(replicas),
              `${replicas === 1 ? 'engine' : 'engines'} for this traffic, ${dollars(usd_per_hour!)} an hour`,
            ],
        [price === null ? '–' : dollars(price), 'for a million output tokens at the sustained load'],
      ]}
    />
  );
}

function Ranking({ result }: { result: FoundTune }): JSX.Element {
  const defaults = defaultsOf(result);
  const rows = result.candidates.map((each, i) => [
    each.is_default ? 'D' : `${i + 1}${each.on_front ? '*' : ''}`,
    each.is_default
      ? `vLLM’s defaults: ${settingsText(each.settings)}`
      : settingsText(each.settings, defaults),
    estimateText(each.sustained_rps),
    each.over_defaults === null ? '–' : estimateText(each.over_defaults),
    latencyText(each.ttft_p99_ms),
    latencyText(each.tpot_p99_ms),
    each.usd_per_million_output_tokens === null ? '–' : dollars(each.usd_per_million_output_tokens),
    finePercent(each.quality),
  ]);
  const names = [
    ...['Place', 'Settings, where they differ from vLLM’s defaults', 'Sustained/s', 'Over defaults'],
    ...['TTFT p99', 'TPOT p99', 'USD/M tokens', 'Quality'],
  ];
  return (
    <WideTable label="Ranking" names={names} rows={rows}>
      Sustained on traffic the search has not seen. 95 % intervals in brackets. Latencies at{' '}
      {amount(result.reference_rps)} requests/s. * on the Pareto front: no other settings are better in load,
      TTFT, TPOT and quality together.
    </WideTable>
  );
}

/** Sustained load against TTFT: the front, and the other settings that were simulated. */
export function tuneFrontChart(result: FoundTune, others: FoundTune['front'] = []): XYChart {
  const defaults = defaultsOf(result);
  const isDrawn = ({ ttft_p99_ms, sustained_rps }: FoundTune['front'][number]) =>
    ttft_p99_ms > 0 && sustained_rps > 0;
  const [front, behind] = [result.front.filter(isDrawn), others.filter(isDrawn)];
  const named = result.candidates.filter(
    ({ is_default, ttft_p99_ms }, i) => (is_default || i === 0) && ttft_p99_ms > 0,
  );
  const tpots = [...front, ...behind].map(({ tpot_p99_ms }) => tpot_p99_ms);
  const [least, most] = [Math.min(...tpots), Math.max(...tpots)];
  const dot = (point: FoundTune['front'][number]) => ({
    x: point.ttft_p99_ms,
    y: point.sustained_rps,
    radius: 3.5 + 5 * (most > least ? Math.log(point.tpot_p99_ms / least) / Math.log(most / least) : 0),
    title: `${settingsText(point.settings, defaults)}: sustains ${amount(point.sustained_rps)} requests/s, TTFT p99 ${latencyText(point.ttft_p99_ms)}, TPOT p99 ${latencyText(point.tpot_p99_ms)}`,
  });
  return {
    label: `${front.length} settings on the front of sustained load and time to first token`,
    x: {
      title: 'TTFT p99 at the reference load, logarithmic',
      logarithmic: true,
      domain: aroundLog([...front, ...behind, ...named].map(({ ttft_p99_ms }) => ttft_p99_ms)),
      text: latencyTick,
    },
    y: {
      title: 'sustained requests/s',
      domain: fromZero([
        ...[...front, ...behind].map(({ sustained_rps }) => sustained_rps),
        ...named.map(({ sustained_rps }) => sustained_rps.interval.high),
      ]),
      text: amount,
    },
    lines: named.map(({ is_default, ttft_p99_ms, sustained_rps: { interval } }) => ({
      look: is_default ? 'second' : 'first',
      points: [
        [ttft_p99_ms, interval.low],
        [ttft_p99_ms, interval.high],
      ],
    })),
    dots: [
      ...behind.map((point) => ({ ...dot(point), look: 'faint' as const, hollow: true })),
      ...front.map((point) => ({ ...dot(point), look: 'first' as const })),
      ...named.map(({ is_default, ttft_p99_ms, sustained_rps, settings }) => ({
        x: ttft_p99_ms,
        y: sustained_rps.value,
        radius: 5,
        look: is_default ? ('second' as const) : ('first' as const),
        title: settingsText(settings, is_default ? undefined : defaults),
        text: is_default ? 'vLLM’s defaults' : 'chosen',
      })),
    ],
    legend: [
      { look: 'first', text: 'on the Pareto front' },
      { look: 'faint', hollow: true, text: 'other settings' },
    ],
  };
}

/** Share of the requests within every limit over the load, for the winner and the defaults. */
function loadChart({ winner, defaults }: ReportedTune['page']['curves']): XYChart {
  const curves = [
    [defaults, 'second'],
    [winner, 'first'],
  ] as const;
  const place = ({ rate, good }: LoadPoint) => [rate, good] as const;
  return {
    label: 'Share of the requests within every limit as the load grows, chosen settings and vLLM’s defaults',
    x: {
      title: 'requests/s of one engine',
      domain: fromZero([...winner, ...defaults].map(({ rate }) => rate)),
      text: amount,
    },
    y: {
      title: 'requests within every limit',
      domain: [0, 1.05],
      ticks: [0, 0.25, 0.5, 0.75, 1],
      text: percent,
    },
    lines: curves.map(([points, look]) => ({ look, points: points.map(place) })),
    dots: curves.flatMap(([points, look]) =>
      points.map((point) => ({
        x: point.rate,
        y: point.good,
        look,
        radius: 3.5,
        hollow: point.sloUse > 1,
        title: `${amount(point.rate)} requests/s: ${finePercent(point.good)} within every limit`,
      })),
    ),
    legend: [
      { look: 'first', text: 'chosen' },
      { look: 'second', text: 'vLLM’s defaults' },
      { look: 'faint', hollow: true, text: 'the SLO does not hold' },
    ],
  };
}

/** Sustained loads of the finalists with their intervals. */
function intervalsChart(candidates: readonly Candidate[], defaults: Settings | undefined): XYChart {
  const estimates = candidates.flatMap(({ sustained_rps, sustained_rps_searched, settings, is_default }, i) =>
    [
      { estimate: sustained_rps_searched, at: i - 0.14, hollow: true },
      { estimate: sustained_rps, at: i + 0.14, hollow: false },
    ].map((each) => ({
      ...each,
      look: is_default ? ('second' as const) : ('first' as const),
      title: settingsText(settings, is_default ? undefined : defaults),
    })),
  );
  return {
    label: 'Sustained requests/s of the finalists with their intervals',
    x: {
      title: 'sustained requests/s',
      domain: fromZero(estimates.map(({ estimate }) => estimate.interval.high)),
      text: amount,
    },
    y: {
      title: '',
      domain: [candidates.length - 0.5, -0.5],
      ticks: candidates.map((_, i) => i),
      text: (i) => (candidates[i].is_default ? 'D' : `${i + 1}`),
    },
    lines: estimates.map(({ estimate: { interval }, at, look }) => ({
      look,
      points: [
        [interval.low, at],
        [interval.high, at],
      ],
    })),
    dots: estimates.map(({ estimate: { value }, at, look, hollow, title }) => ({
      ...{ x: value, y: at, look, hollow, title },
      radius: 4,
    })),
    legend: [
      { look: 'first', text: 'on unseen traffic' },
      { look: 'first', hollow: true, text: 'on that of the search' },
    ],
    height: 94 + 30 * candidates.length,
  };
}

function defaultsOf({ candidates }: FoundTune): Settings | undefined {
  return candidates.find(({ is_default }) => is_default)?.settings;
}

function estimateText(estimate: Estimate): string {
  return `${amount(estimate.value)} (${intervalText(estimate)})`;
}

function intervalText({ interval: { low, high } }: Estimate): string {
  return `${amount(low)} to ${amount(high)}`;
}
